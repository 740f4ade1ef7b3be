-- Jobs and what they need to live: queue settings, keys, workers, history.
-- compatible: 1
-- `rowlock.` is replaced by the name of the schema when this file is loaded.

-- Time is the database's. STABLE, so that the claim can use it as an index condition (a volatile clock read 201,775
-- buffers instead of 3), and the statement's time, so that an enqueue late in a long transaction is not due in the past.
-- Tests move it by replacing this function.
create function rowlock.now() returns timestamptz
    language sql stable parallel safe
    return statement_timestamp();

-- The channel that wakes workers of one queue. Hashed: channel names end at 63 bytes, and they carry no user's words.
create function rowlock.channel(queue text) returns text
    language sql immutable strict parallel safe
    return 'rowlock:' || md5('rowlock.' || queue);

-- Notifications are hints: whoever misses one finds the same by looking, within a second or so. The queue of them is one for
-- the whole server, and when it is full every commit that notifies fails. So from a half on, where PostgreSQL warns that
-- some session takes none, nobody is notified. Both are inlined; to ask takes 0.3 µs, or 4 with 60 sessions that listen.
create function rowlock.notifies() returns boolean
    language sql volatile
    return pg_notification_queue_usage() < 0.5;

create function rowlock.notify(channel text, payload text) returns text
    language sql volatile
    return case when rowlock.notifies() then pg_notify(channel, payload)::text end;

-- Proof of one claim: a hash of the job and of which of its claims it is, and 53 random bits. random() alone repeats itself in
-- sessions where somebody has called setseed(), as any client of a transaction pooler may have. gen_random_uuid() costs 1 µs
-- where PostgreSQL was built with OpenSSL and 4.5 µs where it reads /dev/urandom, a sixth of the whole claim; this one 0.7.
create function rowlock.token(job uuid, claim integer) returns uuid
    language sql volatile parallel safe
    as $$
    select encode(int8send(uuid_hash_extended(job, claim)) || int8send((random() * 9007199254740992)::bigint), 'hex')::uuid
    $$;

-- UUIDv7 on every supported version; PostgreSQL has its own only from 18 on. Clients make theirs themselves.
create function rowlock.uuid7() returns uuid
    language sql volatile parallel safe
    as $$
    select encode(
        set_bit(set_bit(
            overlay(uuid_send(gen_random_uuid())
                placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
                from 1 for 6),
            52, 1), 53, 1), 'hex')::uuid
    $$;

-- Live jobs: waiting, ready or running. One that ends leaves for history in the statement that settles it.
create table rowlock.jobs (
    id          uuid primary key,
    queue       text not null check (octet_length(queue) between 1 and 200),
    task        text not null check (octet_length(task) between 1 and 200),
    state       text not null default 'ready' check (state in ('waiting', 'ready', 'running')),
    priority    smallint not null default 0 check (priority between -4 and 4),
    begun       boolean default false,          -- running: its handler has begun; not yet, as far as is known; null: as
                                                -- before, and its worker died once: to be said before it begins
    failures    integer not null default 0,     -- attempts spent
    crashes     integer not null default 0,     -- attempts whose worker died; they are not spent
    claims      integer not null default 0,     -- attempts started, however they ended; never goes back
    attempts    integer not null check (attempts > 0),  -- how many may be spent
    run_at      timestamptz not null,
    created_at  timestamptz not null,
    started_at  timestamptz,                    -- when it was last claimed, or has begun if that is known
    expires_at  timestamptz,                    -- not worth starting after this
    token       uuid,                           -- proof of the current claim, new for every row and claim
    worker      uuid,                           -- who holds, or last held, it
    args        json not null,                  -- json, not jsonb: stored as sent (jsonb makes 1e22 an int, -0.0 0.0)
    key         text check (octet_length(key) between 1 and 500),
    tags        text[],
    waits_for   text check (waits_for in ('children', 'signal', 'code', 'pause', 'suspect')),
    reason      text,                           -- why it waits, in words
    errors      json[],                         -- the last ten
    progress    json,                           -- how far its attempt says it is: share, note, at
    cancel_at   timestamptz,                    -- somebody asked, while it ran: however the attempt ends, the job is cancelled
    version     integer check (version > 0),    -- of a workflow's code; null: not a workflow
    parent      uuid,                           -- the workflow whose child it is
    wakes       integer not null default 0,     -- signals sent to it and children of it that ended, so far
    wakes_at    integer,                        -- parked: ready when there have been so many wakes, or when run_at has come
    workflow_state json,                        -- what it says of itself, for those who look
    -- A workflow has steps to undo, and a child a parent to tell: both end only by a worker that has claimed them.
    check (cancel_at is null or state = 'running' or version is not null or parent is not null),
    check (wakes_at is null or state <> 'running'),
    check ((state = 'running') = (token is not null)),
    check ((state = 'waiting') = (waits_for is not null)),
    -- As in the API, for those who insert rows themselves: by the stored size, which reads nothing that is long. What is
    -- inserted is not compressed yet, unless it comes from another table: then it is read. An update is checked again, so a job
    -- that was claimed or set aside is not read: its arguments may be what cannot be read.
    constraint args_of_1_mib_at_most check (pg_column_size(args) <= 1048576 + 4 and (
        pg_column_compression(args) is null or claims > 0 or state <> 'ready' or octet_length(args::text) <= 1048576
    )),
    constraint tags_32_at_most check (tags is null or (cardinality(tags) <= 32 and pg_column_size(tags) <= 8192 and (
        pg_column_compression(tags) is null or claims > 0 or state <> 'ready'
        or octet_length(array_to_string(tags, '')) <= 8192
    ))),
    -- An empty array has no dimensions. Most jobs have no tags, and every update checks this again.
    constraint tags_are_a_list_without_null check (
        tags is null or (coalesce(array_ndims(tags), 1) = 1 and array_position(tags, null) is null)
    )
) with (
    -- A queue's table is small and churns: vacuum by count of dead rows, not by share, and leave room for HOT updates.
    -- vacuum_truncate is off here and for what comes and goes with jobs: after a flood their files stay as large as they were,
    -- and are filled again. To cut one off, vacuum locks out everybody, on standbys too.
    vacuum_truncate = off, toast.vacuum_truncate = off,
    autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.0, autovacuum_vacuum_insert_threshold = 100000,
    autovacuum_vacuum_cost_delay = 1, toast.autovacuum_vacuum_scale_factor = 0.0, toast.autovacuum_vacuum_threshold = 5000
);

-- The claim's index: per queue and priority an exact range of (run_at, id).
create index jobs_ready on rowlock.jobs (queue, priority, run_at, id) where state = 'ready';
-- What a worker holds, for its rescue; and what it has claimed lately, for those that look whether it knows of all.
create index jobs_running on rowlock.jobs (worker, started_at) where state = 'running';
-- What a worker is asked to cancel.
create index jobs_cancelling on rowlock.jobs (worker) where cancel_at is not null and state = 'running';
-- What is not worth starting any more, also where nobody claims; workflows that have begun, and children, end by a worker.
create index jobs_expiring on rowlock.jobs (expires_at)
    where expires_at is not null and state <> 'running' and parent is null and (version is null or claims = 0);
-- The queue is there to be counted by: then that reads no job.
create index jobs_waiting on rowlock.jobs (waits_for, task, queue) where state = 'waiting';
-- What workers have refused, for those that can run it: by kind, for there may be a million of one. Written as in job_take_up.
create index jobs_refused on rowlock.jobs (
    task, queue, (coalesce(version, 0)), (coalesce(reason like 'unknown task%' or reason like 'unknown version%', false)),
    (coalesce(worker, '00000000-0000-0000-0000-000000000000'))
) where waits_for = 'code' and coalesce(reason, '') not like 'PostgreSQL refuses to %';
-- Workflows that met a fault and are tried again after a time: only those have a run_at after they were claimed.
create index jobs_blocked on rowlock.jobs (run_at)
    where waits_for = 'code' and version is not null and run_at > started_at;
-- Jobs that two workers died of, for those who run them one by one.
create index jobs_suspect on rowlock.jobs (run_at, id) where waits_for = 'suspect';
-- The children of a workflow.
create index jobs_parent on rowlock.jobs (parent) where parent is not null;
-- Workflows, for those who look.
create index jobs_workflows on rowlock.jobs (id) where version is not null;
-- Parked ones, to be counted.
create index jobs_parked on rowlock.jobs (queue, run_at) where wakes_at is not null;

-- The state of a live job as people see it. A workflow that waits for a signal, a child or a time is `parked`, whether its row
-- is stored as waiting (nothing but a wake readies it) or as ready (a claim does when its time has come). A parked one whose
-- task is paused, or whose code is missing, waits for that first.
create function rowlock.shown_state(state text, waits_for text, wakes_at integer, run_at timestamptz) returns text
    language sql stable parallel safe
    return case
        when wakes_at is not null and (waits_for in ('signal', 'children') or (state = 'ready' and run_at > rowlock.now()))
            then 'parked'
        else state
    end;

-- The name of a part of history or events, by its first day and for how many days it is: one or a week of history, which has a w
-- in its name, or a week of events. Refuses a day that is not the first of a part.
-- Parts are made and dropped by functions that have their owner's rights (`security definer`), because workers need not own
-- our tables. So nothing is taken on trust there: names are made from a date, every other name is written out, and no
-- search_path but this one counts: by the caller's, a function of the caller's could be found and run as the owner.
create function rowlock.part_name(partitioned text, first date, days integer) returns text
    language plpgsql immutable strict
    set search_path = pg_catalog, pg_temp
    as $$
    begin
        -- An infinite date has no digits, and the name without them is that of the whole table.
        if (partitioned, days) not in (('history', 1), ('history', 7), ('events', 7))
            or not isfinite(first) or (first - date '0001-01-01' + 1) % days <> 0
            or first not between date '1970-01-01' and date '9998-12-31' then
            raise exception 'rowlock: no part of % for % days begins on %', partitioned, days, first
                using errcode = 'invalid_parameter_value';
        end if;
        return partitioned || to_char(first, '_YYYYMMDD') || case when partitioned = 'history' and days = 7 then 'w' else '' end;
    end
    $$;

-- Make one part of a table that is kept by the day or the week: created standalone, then attached, because
-- CREATE … PARTITION OF waits for readers and blocks settles.
create function rowlock.make_part(partitioned text, first date, days integer) returns void
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp
    as $$
    declare
        part text := rowlock.part_name(partitioned, first, days);
        after date := first + days;
        today date := (rowlock.now() at time zone 'UTC')::date;
    begin
        if part is null or after <= today or first > today + 420 then
            raise exception 'rowlock: no part of % is wanted that begins on %', partitioned, first
                using errcode = 'invalid_parameter_value';
        end if;
        execute format('create table rowlock.%I (like rowlock.%I including all)', part, partitioned);
        execute format(
            'alter table rowlock.%I attach partition rowlock.%I for values from (%L) to (%L)',
            partitioned, part, to_char(first, 'YYYY-MM-DD'), to_char(after, 'YYYY-MM-DD')
        );
    end
    $$;

-- Drop one part of which everything has expired, for those who do not own our tables or have a pooler before them: owners
-- detach it first, and block nobody (CONCURRENTLY, which no function can). This one waits for readers and makes others wait
-- behind it, so it gives up soon; the next upkeep tries again.
create function rowlock.drop_part(partitioned text, first date, days integer) returns void
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp
    set lock_timeout = '200ms'
    as $$
    declare
        part text := rowlock.part_name(partitioned, first, days);
        after date := first + days;
    begin
        if part is null or after > (rowlock.now() at time zone 'UTC')::date then
            raise exception 'rowlock: the part of % that begins on % has not expired', partitioned, first
                using errcode = 'invalid_parameter_value';
        end if;
        execute format('drop table if exists rowlock.%I', part);
    end
    $$;

-- The last ten errors with a new one, if there is a new one.
create function rowlock.add_error(errors json[], failure text, attempt integer, worker uuid, started_at timestamptz)
    returns json[]
    language sql stable parallel safe
    return case
        when failure is null then errors
        else (errors || (failure::jsonb || jsonb_build_object(
            'attempt', attempt, 'worker', worker, 'started_at', started_at, 'ended_at', rowlock.now()
        ))::json)[greatest(1, coalesce(cardinality(errors), 0) - 8):]
    end;

-- Ended jobs, partitioned by the day on which they expire; by the week where some are kept for more than 60 days.
create table rowlock.history (
    id          uuid not null,
    queue       text not null,
    task        text not null,
    state       text not null check (state in ('succeeded', 'failed', 'cancelled')),
    priority    smallint not null,
    failures    integer not null,
    crashes     integer not null,
    claims      integer not null,
    attempts    integer not null,
    run_at      timestamptz not null,
    created_at  timestamptz not null,
    started_at  timestamptz,
    ended_at    timestamptz not null,
    expires_on  date not null,                  -- the day after which nobody wants it: retention drops whole parts
    worker      uuid,
    args        json not null,
    result      json,
    key         text,
    tags        text[],
    reason      text,                           -- failed: exhausted, poison, …; cancelled: asked, expired, …
    errors      json[],
    progress    json,
    version     integer,
    parent      uuid,
    workflow_state json,
    steps       json,                           -- of a workflow: what rowlock.steps held, and the signals that nobody took
    -- Looked into by id alone. It takes the day, too, because the parts are made by that; without a key of its own a table
    -- that is published cannot be deleted from, and every retry by an operator failed.
    primary key (id, expires_on)
) partition by range (expires_on);

-- What people look for among millions that went well.
create index history_trouble on rowlock.history (id) where state <> 'succeeded';
-- And when it went wrong. The job may have been made long before that.
create index history_trouble_ended on rowlock.history (ended_at, id) include (expires_on) where state <> 'succeeded';
-- When any job ended, for lists that begin with the latest.
create index history_ended on rowlock.history (ended_at, id);
create index history_workflows on rowlock.history (id) where version is not null;

-- What a live workflow remembers. Written by its current attempt only, which proves by its token that it is; the outcome of a
-- child is written by the statement that ends the child. Folded into the history row when the workflow ends.
create table rowlock.steps (
    job         uuid not null,
    key         text not null check (octet_length(key) between 1 and 500),  -- name and occurrence: charge, charge#2, 1/charge
    position    integer not null,               -- in the order in which its branch of the code has called
    kind        text not null check (kind in (
        'start', 'step', 'transaction', 'sleep', 'signal', 'child', 'any', 'now', 'patched', 'undo', 'failure'
    )),
    state       text not null check (state in ('open', 'retrying', 'done', 'failed', 'closed')),
    input       json,                           -- what it was called with, where that is JSON: a replay must call it the same
    value       json,                           -- its result
    error       json,                           -- what it failed of, last
    attempts    integer not null default 0,     -- tries that have failed
    until       timestamptz,                    -- sleep: its end; signal: its time-out; retrying: its next try
    child       uuid,
    form        json,                           -- of a signal: the JSON Schema of what it waits for
    started_at  timestamptz not null,
    ended_at    timestamptz,
    primary key (job, key)
) with (
    vacuum_truncate = off, toast.vacuum_truncate = off,
    autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 1
);
-- Where a child's outcome goes.
create index steps_child on rowlock.steps (child) where child is not null;
-- When a workflow that parks is due.
create index steps_due on rowlock.steps (job, until) where state in ('open', 'retrying');
-- Approvals: workflows that wait for a signal with a form, which is what people fill in. For those who count them.
create index steps_approval on rowlock.steps (job) where kind = 'signal' and state = 'open' and form is not null;
create view rowlock.approvals as
select step.job, step.started_at
from rowlock.steps as step
where step.kind = 'signal' and step.state = 'open' and step.form is not null;

-- Signals to live workflows, in the order in which they came: stored first, taken by one wait at most.
create table rowlock.signals (
    id          uuid primary key default rowlock.uuid7(),   -- the sender's: one that is sent again is the same
    job         uuid not null,
    number      integer not null,               -- among those to its job: the order in which they are taken
    name        text not null check (octet_length(name) between 1 and 200),
    payload     json,
    key         text check (octet_length(key) between 1 and 500),  -- a second signal with this key is ignored
    sent_at     timestamptz not null,
    taken_at    timestamptz                     -- kept until the workflow ends, so that its key is known
) with (
    vacuum_truncate = off, toast.vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000
);
create unique index signals_job on rowlock.signals (job, number);
create unique index signals_key on rowlock.signals (job, key) where key is not null;

-- What a workflow remembers and what it was sent, as its row in history keeps it; null if there is nothing.
-- Text is joined to text: json_strip_nulls would take the nulls out of users' values, too.
-- Returns one row. As a set, for then it becomes part of the statement that asks: a function that returns a value starts over
-- for each row, and a settle of 100 workflows took 8.1 ms in place of 5.8.
create function rowlock.folded(job uuid) returns setof json
    language sql stable
    as $$
    select ('{' || nullif(concat_ws(',', '"steps":[' || steps || ']', '"signals":[' || signals || ']'), '') || '}')::json
    from (
        select
            (
                select string_agg('{' || concat_ws(',',
                    '"key":' || to_json(key), '"position":' || position, '"kind":"' || kind || '"', '"state":"' || state || '"',
                    '"input":' || input, '"value":' || value, '"error":' || error, '"attempts":' || attempts,
                    '"until":' || to_json(until), '"child":"' || child || '"', '"form":' || form,
                    '"started_at":' || to_json(started_at), '"ended_at":' || to_json(ended_at)
                ) || '}', ',' order by started_at, key)
                from rowlock.steps
                where steps.job = folded.job
            ) as steps,
            (
                select string_agg('{' || concat_ws(',',
                    '"id":"' || id || '"', '"number":' || number, '"name":' || to_json(name), '"payload":' || payload,
                    '"key":' || to_json(key), '"sent_at":' || to_json(sent_at), '"taken_at":' || to_json(taken_at)
                ) || '}', ',' order by number)
                from rowlock.signals
                where signals.job = folded.job
            ) as signals
    ) as parts
    $$;

-- The steps that were folded, as rows again: for those who look, and to fork from. Read as a record, a JSON null would be none.
create function rowlock.unfolded(job uuid, folded json) returns setof rowlock.steps
    language sql stable
    as $$
    select
        job, step.key, step.position, step.kind, step.state, one -> 'input', one -> 'value', one -> 'error', step.attempts,
        step.until, step.child, one -> 'form', step.started_at, step.ended_at
    from json_array_elements(folded -> 'steps') as one
    cross join lateral json_to_record(one) as step (
        key text, position integer, kind text, state text, attempts integer, until timestamptz, child uuid,
        started_at timestamptz, ended_at timestamptz
    )
    $$;

-- Where a step stands in the code: what comes before its name, '' for what the function calls by itself.
create function rowlock.branch(key text) returns text
    language sql immutable strict parallel safe
    return substring(key from '^(?:.*/)?');

-- The steps from which a retry goes on: all but the one that has failed, and what the code did about that afterwards. What ran
-- beside it and failed, too, or was cut off, is left out with it, unless its branch went on. Children of one task are taken for those of one
-- map: what they made is kept, though they were started after the failure, and all that failed are run again.
-- Children that had not ended were cancelled. If anything was undone, there is nothing to go on from: it starts over, as one that
-- is to be run once more though all went well (`anew`). What it does then is not what it did, so its restarts are counted on:
-- idempotency keys are made of that, and by the old ones a bank would answer with the payment that was refunded.
create function rowlock.resumed(job uuid, folded json, anew boolean) returns setof rowlock.steps
    language sql stable
    as $$
    with records as materialized (
        select step as record, step.*, rowlock.branch(step.key) as branch,
            min(step.started_at) over (partition by rowlock.branch(step.key)) as began
        from rowlock.unfolded(job, folded) as step
    ),
    failed as materialized (
        select key, regexp_replace(key, '#[0-9]+$', '') as name, kind, branch, position, started_at, ended_at
        from records
        where key = (select failure.value ->> 'step' from records as failure where failure.kind = 'failure')
    ),
    compared as materialized (
        select
            records.*,
            records.key = failed.key as is_failed,
            records.kind = 'child' and failed.kind = 'child'
                and regexp_replace(records.key, '#[0-9]+$', '') = failed.name as is_sibling,
            records.ended_at > failed.started_at as is_beside,
            records.started_at >= failed.ended_at
                and (
                    (records.branch = failed.branch and records.position > failed.position)
                    or (starts_with(records.branch, failed.branch) and records.began >= failed.ended_at)
                ) as is_after
        from records
        left join failed on true
    ),
    begun as materialized (
        select anew or exists (select from records where kind = 'undo' and state = 'done') as is_anew
    )
    select
        job, 'start', 0, 'start', 'done', null, (select value from records where kind = 'start'), null,
        coalesce((select attempts from records where kind = 'start'), -1) + 1, null, null, null, rowlock.now(), rowlock.now()
    from begun
    where is_anew
    union all
    select (record).*
    from compared
    where not (select is_anew from begun) and case
        when kind = 'start' then true
        when kind in ('failure', 'undo') or (kind = 'child' and state = 'open') or is_failed then false
        when is_after and not is_sibling then false
        when (state = 'failed' or (state = 'closed' and kind in ('step', 'transaction')))
            and (is_beside or is_sibling) then exists (
            select from records as later
            where later.branch = compared.branch
                and later.position > compared.position
                and later.started_at >= compared.ended_at
                and not (later.kind = 'child' and compared.kind = 'child')
        )
        else true
    end
    $$;

-- Workflows, live and ended, under the names that people look for.
-- A view has its owner's rights: which of its columns a role may read is granted as it is for tables.
create view rowlock.workflows as
select
    job.id, job.key, job.task as workflow, job.version,
    rowlock.shown_state(job.state, job.waits_for, job.wakes_at, job.run_at) as state,
    job.cancel_at is not null as cancelling,
    (
        select step.key from rowlock.steps as step where step.job = job.id
        order by (step.state in ('open', 'retrying')) desc, step.started_at desc, step.position desc
        limit 1
    ) as current_step,
    case when job.state = 'running' or job.claims = 0 then job.waits_for else coalesce(job.waits_for, (
        select case when step.state = 'retrying' then 'retry' when step.kind = 'child' then 'children' else step.kind end
        from rowlock.steps as step
        where step.job = job.id and step.state in ('open', 'retrying') and job.run_at > rowlock.now()
        order by step.until nulls last
        limit 1
    )) end as waits_for,
    job.reason, job.workflow_state, job.args as input, null::json as result,
    concat_ws(
        ': ', job.errors[cardinality(job.errors)] ->> 'type', job.errors[cardinality(job.errors)] ->> 'message'
    ) as last_error,
    job.parent, job.queue, job.priority, job.created_at,
    coalesce((select min(step.started_at) from rowlock.steps as step where step.job = job.id), job.started_at) as started_at,
    null::timestamptz as ended_at,
    greatest(
        job.created_at, job.started_at,
        (select max(coalesce(step.ended_at, step.started_at)) from rowlock.steps as step where step.job = job.id)
    ) as updated_at
from rowlock.jobs as job
where job.version is not null
union all
select
    past.id, past.key, past.task, past.version, past.state, false,
    (
        select coalesce(step.value ->> 'step', step.key) from rowlock.unfolded(past.id, past.steps) as step
        order by (step.kind = 'failure') desc, step.started_at desc, step.position desc
        limit 1
    ),
    null, past.reason, past.workflow_state, past.args, past.result,
    concat_ws(
        ': ', past.errors[cardinality(past.errors)] ->> 'type', past.errors[cardinality(past.errors)] ->> 'message'
    ),
    past.parent, past.queue, past.priority, past.created_at,
    coalesce((past.steps -> 'steps' -> 0 ->> 'started_at')::timestamptz, past.started_at), past.ended_at, past.ended_at
from rowlock.history as past
where past.version is not null;

-- What workflows remember, of live and of ended ones.
create view rowlock.workflow_steps as
select
    step.job as workflow_id, step.key as step_key, regexp_replace(step.key, '^.*/|#[0-9]+$', '', 'g') as name, step.kind,
    step.state, step.input, step.value as result, step.error, step.attempts, step.until, step.child, step.form,
    step.started_at, step.ended_at, step.ended_at - step.started_at as duration, step.position
from rowlock.steps as step
union all
select
    step.job, step.key, regexp_replace(step.key, '^.*/|#[0-9]+$', '', 'g'), step.kind, step.state, step.input, step.value,
    step.error, step.attempts, step.until, step.child, step.form, step.started_at, step.ended_at,
    step.ended_at - step.started_at, step.position
from rowlock.history as past
cross join lateral rowlock.unfolded(past.id, past.steps) as step
where past.version is not null;

-- A key belongs to one live job; it is free again when that job ends, but one with a period not before that has passed,
-- unless its job has failed or was cancelled. Who gives the key of a live job to another locks that job's row first.
create table rowlock.keys (
    key         text primary key check (octet_length(key) between 1 and 500),
    task        text not null,
    job         uuid not null,
    until       timestamptz                     -- the end of its period, if it has one
) with (vacuum_truncate = off);
create index keys_until on rowlock.keys (until) where until is not null;

-- An operator's settings for a queue; no row means the defaults.
create table rowlock.queues (
    name        text primary key check (octet_length(name) between 1 and 200),
    -- At most so long: history has a partition for each week of it.
    keep_succeeded interval check (keep_succeeded between '0' and '400 days'),
    keep_failed    interval check (keep_failed between '0' and '400 days'),
    keep_cancelled interval check (keep_cancelled between '0' and '400 days')
);

-- Queues and tasks that an operator has stopped for a while. The claim reads them, so a pause holds from its commit on.
create table rowlock.pauses (
    kind        text not null check (kind in ('queue', 'task')),
    name        text not null check (octet_length(name) between 1 and 200),
    until       timestamptz,                    -- resumes by itself then; null: when somebody says so
    reason      text,
    actor       text not null,
    at          timestamptz not null,
    primary key (kind, name)
);

-- The latest failures of tasks that have a breaker: so many within so long, and the task is paused.
create table rowlock.breakers (
    task        text primary key check (octet_length(task) between 1 and 200),
    failed_at   timestamptz[] not null          -- no more than it takes to trip it, the oldest first
);

-- Rules that make jobs, declared in code or added by operators. Any worker fires all that are due.
create table rowlock.schedules (
    name        text primary key check (octet_length(name) between 1 and 90),
    cron        text,
    tz          text,                           -- of the cron expression; null: UTC
    every       interval check (every > '0'),
    task        text not null check (octet_length(task) between 1 and 200),
    args        json not null,
    queue       text not null check (octet_length(queue) between 1 and 200),
    priority    smallint not null check (priority between -4 and 4),
    attempts    integer not null check (attempts > 0),
    version     integer check (version > 0),    -- of the workflow that it starts
    expires     interval,                       -- how long each of its jobs is worth starting
    tags        text[],
    jitter      interval not null check (jitter >= '0'),
    overlap     text not null check (overlap in ('allow', 'skip', 'queue', 'replace')),
    catch_up    integer not null check (catch_up >= 0),     -- how many slots that were missed are made up for, the newest
    at_boot     boolean not null,               -- also run when a worker starts
    declared    json,                           -- what the code says; null: an operator added it
    edits       json,                           -- what an operator says differently from the code
    -- Not everybody may read arguments, and so what was declared and edited; whether something was, everybody may know.
    is_declared boolean not null generated always as (declared is not null) stored,
    is_edited   boolean not null generated always as (edits is not null) stored,
    paused_at   timestamptz,
    paused_until timestamptz,
    paused_by   text,
    paused_why  text,
    next_at     timestamptz not null,           -- the next slot
    last_at     timestamptz,                    -- the last slot that was fired or passed over
    held        timestamptz,                    -- a slot that waits for the end of the job before it
    booted_at   timestamptz,
    jobs        uuid[] not null default '{}',   -- those it made that may be live: for overlap
    created_at  timestamptz not null,
    check ((cron is null) <> (every is null)),
    check (tz is null or cron is not null)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500);
create index schedules_due on rowlock.schedules (next_at);
create index schedules_paused on rowlock.schedules (paused_until) where paused_until is not null;
create index schedules_held on rowlock.schedules (held) where held is not null;

-- One row for each slot of a schedule that was fired or passed over, written with its job: that is what makes it once.
create table rowlock.firings (
    schedule    text not null,
    slot        timestamptz not null,
    job         uuid,                           -- null: passed over
    reason      text,                           -- why it was passed over, or what else made it: boot, asked
    at          timestamptz not null,
    primary key (schedule, slot)
);
create index firings_at on rowlock.firings (at);

-- One row per live worker process and incarnation.
create table rowlock.workers (
    id          uuid primary key,
    host        text not null,
    pid         integer not null,
    queues      text[] not null,
    slots       integer not null,
    tasks       text[] not null,
    schedules   text[] not null default '{}',   -- those that its code declares
    version     text not null,
    started_at  timestamptz not null,
    lease       timestamptz not null,           -- holds what it claimed until then
    lasts       interval not null,              -- how long a lease is, from one renewal on
    dead        boolean not null default false, -- taken for dead: it may not renew any more
    stopping    boolean not null default false,
    stuck       integer not null default 0,     -- attempts that timed out and go on all the same
    restarts    integer not null default 0,     -- how often in a row this process restarted after an internal error
    fault       text,                           -- the last of those
    blocked     float8,                         -- for how many seconds its event loop had stood still at its last renewal
    blocked_by  text,                           -- by what: task and job, as far as it can tell
    failing     text,                           -- a settle or claim that has been failing for half a minute or more
    failing_since   timestamptz,
    -- Claims that found jobs, in the last minute in which there were any: how many, their jobs, their seconds.
    claims          integer not null default 0,
    claimed         integer not null default 0,
    claim_seconds   float8 not null default 0,
    claim_slowest   float8 not null default 0
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500);

-- The claim and the renewal read one row by both: under a held snapshot a worker has a dead version for each renewal, and only
-- those of the last half minute have a lease that is not over.
create index workers_own on rowlock.workers (id, lease);
-- Who has died since somebody last looked.
create index workers_lease on rowlock.workers (lease);

-- What one worker does for the whole fleet. Whoever is at it has locked the row, for the length of a transaction: an advisory
-- lock could be taken by anybody who can connect to the database.
create table rowlock.duties (
    name        text primary key,
    begun_at    timestamptz not null default '-infinity',   -- of those that come round every so often: the last turn,
    done        boolean not null default true               -- and whether it was finished
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 200);
insert into rowlock.duties (name)
values
    ('rescue'), ('schedules'), ('partitions'), ('lost'), ('below'), ('waiters'), ('pauses'), ('expired'), ('failures'), ('keys'),
    ('retention'), ('merging'), ('minutes'), ('firings'), ('backlog'), ('blocked');

-- When somebody last looked for dead workers, in milliseconds since 1970. Every worker reads it all the time and one of them
-- writes it, so it is a sequence: the one thing that PostgreSQL overwrites in place, and that no held snapshot makes slower.
create sequence rowlock.looked_at;

-- Workers that hold the advisory lock of their id: whoever is here and does not hold it was killed, or lost its connection.
-- Unlogged: a crash of the server drops every session's lock, and with them these rows, so that nobody looks dead by it.
create unlogged table rowlock.present (
    worker      uuid primary key,
    server      timestamptz not null,           -- when the server that has the lock was started: it goes with that server
    suspected_at timestamptz                    -- a look has found the lock free; a second one makes sure
);

-- What a worker did in a minute, by queue and task: rates and durations are read from here, kept for a day.
-- Rows are written a few times while their minute lasts, each time whole, so that a repeated write counts nothing twice.
-- A histogram is one number, twelve digits for each bucket, the first bucket's last: sum() adds up all buckets at once (a
-- day of a large fleet in 0.1 s; arrays, taken apart and added up bucket by bucket, took 1 s).
create table rowlock.minutes (
    minute      timestamptz not null,
    worker      uuid not null,
    queue       text not null,
    task        text not null,
    claimed     integer not null,
    succeeded   integer not null,
    failed      integer not null,
    cancelled   integer not null,
    retried     integer not null,
    seconds     float8 not null,                -- of the attempts that returned or raised, all together
    slowest     float8 not null,
    durations   numeric not null,               -- how many in each bucket
    waited      float8 not null,                -- how long jobs had been due when they were claimed, all together
    longest     float8 not null,
    waits       numeric not null,               -- how many in each bucket
    primary key (minute, worker, queue, task)
) with (fillfactor = 70);

-- Workers with free slots and nothing to do: an enqueue notifies only if it finds one here. A transaction that notifies
-- holds a global lock until its commit is on disk: 3.2k instead of 12.5k enqueues a second from 32 producers.
-- Unlogged: a crash empties it, and every worker parks again when it reconnects.
create unlogged table rowlock.parkings (
    number      bigint not null,                -- of parking_number: the newest is the highest
    queue       text not null,
    worker      uuid not null,
    primary key (queue, number, worker)
) with (vacuum_truncate = off, fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 200);
create sequence rowlock.parking_number;
alter table rowlock.parkings alter column number set default nextval('rowlock.parking_number');

-- The workers that an enqueue finds: only those of the last 400 parkings, for a queue on which nobody is parked among the last 200
-- is one on which a worker parks again. So whoever looks walks 400 dead rows at most; under a held snapshot it was all that there
-- had ever been, and after a million parkings an enqueue took 1.4 s. One parking is enough for a queue, for all who serve it hear
-- what is sent to its channel; and where there is none all the same, workers look by themselves within a second.
create view rowlock.parked as
select parkings.queue, parkings.worker
from rowlock.parkings
where parkings.number > (select last_value - 400 from rowlock.parking_number);

-- Who waits for the end of a job: a settle notifies the listener of each job that has one here, and nobody else.
-- Unlogged: a crash empties it, and every listener enters again what it waits for when it reconnects.
create unlogged table rowlock.waiters (
    job         uuid not null,
    listener    uuid not null,                  -- one per process; its channel is `rowlock:` and this
    at          timestamptz not null,
    primary key (job, listener)
) with (vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);

-- Make way for a job whose key is held: free the key, or, if `replaces`, give its holder the new job's arguments. Returns
-- whether to try for the key again; if not, the holder keeps it, and has the new arguments.
-- With the owner's rights, because who may enqueue may neither change a job nor free a key. It can be used for nothing else:
-- the key must be that holder's. It is freed if the holder has ended, and its period is over or it is to be replaced; and a
-- holder of the same task that is to be replaced gets the arguments if it does not run, and else goes on without the key.
-- The holder's row is locked before its key's, as by all who end jobs: so they cannot deadlock. A key is freed only as it was
-- seen: an operator who retries its job meanwhile takes away its period, and that one is held again.
create function rowlock.make_way(
    key text, holder uuid, task text, replaces boolean, args json, starts timestamptz, at_most interval, priority smallint,
    lifetime interval
) returns boolean
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp
    as $$
    #variable_conflict use_variable
    declare
        held rowlock.keys;
        live rowlock.jobs;
        due timestamptz;
    begin
        select * into held from rowlock.keys as one where one.key = make_way.key and one.job = holder;
        if not found then
            return true;
        end if;
        if replaces and held.task = task then
            select * into live from rowlock.jobs as job where job.id = holder for update;
        else
            select * into live from rowlock.jobs as job where job.id = holder;
        end if;
        if not found then
            if not (held.task = task and replaces) and coalesce(held.until > rowlock.now(), true) then
                return false;
            end if;
            delete from rowlock.keys as one
            where one.key = make_way.key and one.job = holder and one.until is not distinct from held.until;
            return true;
        elsif not replaces or held.task <> task or live.version is not null then
            return false;
        elsif live.key is distinct from key then
            return true;  -- another caller was here while we waited for the row
        elsif live.state = 'running' then
            update rowlock.jobs as job set key = null where job.id = holder;
            delete from rowlock.keys as one where one.key = make_way.key and one.job = holder;
            return true;
        end if;
        -- With a bound it is put off, and never brought forward.
        due := case
            when at_most is null then coalesce(starts, live.run_at)
            else greatest(live.run_at, least(starts, live.created_at + at_most))
        end;
        update rowlock.jobs as job
        set args = make_way.args, run_at = due, priority = coalesce(make_way.priority, live.priority),
            expires_at = coalesce(due + lifetime, live.expires_at)
        where job.id = holder;
        -- Somebody's job has other arguments now. A debounce is meant to happen often, and is not written down.
        if at_most is null then
            insert into rowlock.events (kind, job, actor, details)
            values ('rewritten', holder, session_user, json_build_object(
                'task', live.task, 'queue', live.queue, 'key', key, 'run_at', due, 'from', live.run_at
            ));
        end if;
        if due <= rowlock.now() and (due, coalesce(priority, live.priority)) <> (live.run_at, live.priority)
            and exists (select from rowlock.parked where parked.queue = live.queue) then
            perform rowlock.notify(rowlock.channel(live.queue), 'below');
        end if;
        return false;
    end
    $$;

-- Insert one job and notify if a worker is parked on its queue; if its key is held, what that means is what `taken` says.
-- Returns the job that has the key, its task and queue, and whether it was made here. `replace` and `debounce` give its
-- arguments to a holder of the same task that does not run; for the others, what to tell the caller is the caller's to say.
-- A held key's holder is looked for in the next statement, for in the same one a concurrent winner is not visible; it may be
-- gone by then, or make way: then it is tried again.
create function rowlock.put(
    id uuid, queue text, task text, args json, priority smallint, attempts integer, run_at timestamptz, delay interval,
    lifetime interval, tags text[], key text, period interval, taken text, at_most interval, is_priority_named boolean,
    version integer, out job uuid, out of_task text, out on_queue text, out created boolean
)
    language plpgsql volatile
    as $$
    #variable_conflict use_variable
    declare
        starts timestamptz := greatest(coalesce(run_at, rowlock.now() + delay), rowlock.now());
        holder rowlock.keys;
        replaces boolean := taken in ('replace', 'debounce');
    begin
        job := id; of_task := task; on_queue := queue; created := true;
        while key is not null loop
            insert into rowlock.keys (key, task, job, until) values (key, task, id, rowlock.now() + period)
            on conflict do nothing;
            exit when found;
            select * into holder from rowlock.keys as held where held.key = put.key;
            continue when not found;
            if holder.job = id then
                return;  -- it was sent before
            end if;
            if holder.until <= rowlock.now() or (replaces and holder.task = task) then
                continue when rowlock.make_way(
                    key, holder.job, task, replaces, args,
                    case when coalesce(run_at, rowlock.now() + delay) is not null then starts end,
                    at_most, case when is_priority_named then priority end, lifetime
                );
            end if;
            job := holder.job; of_task := holder.task; created := false;
            on_queue := (select held.queue from rowlock.jobs as held where held.id = holder.job);
            return;
        end loop;
        insert into rowlock.jobs
            (id, queue, task, priority, attempts, run_at, created_at, expires_at, args, tags, key, version)
        values (
            id, queue, task, priority, attempts, starts, rowlock.now(), starts + lifetime, args, tags, key, version
        );
        if starts <= rowlock.now() + interval '1 second' and exists (select from rowlock.parked where parked.queue = put.queue) then
            perform rowlock.notify(rowlock.channel(queue), '');
        end if;
    end
    $$;

-- Enqueue from SQL: for other languages, triggers and psql. Python has its own statements, which say the same.
-- Returns the job's id; with a key that is held, the id of the job that holds it. What else a held key can mean is `taken`:
-- return, skip, raise, replace or debounce; with a `period`, the key of a job that succeeds is held until then.
-- A workflow is enqueued with the version of its code: version => 2.
create function rowlock.enqueue(
    task text, args json default '{}', queue text default 'default', priority integer default null,
    run_at timestamptz default null, delay interval default null, key text default null, tags text[] default null,
    attempts integer default null, expires interval default null, period interval default null,
    taken text default 'return', at_most interval default null, version integer default null
) returns uuid
    language plpgsql volatile
    as $$
    declare
        made record;
        fault text := case
            when json_typeof(args) is distinct from 'object'
                then 'args must be a JSON object of arguments by name, not ' || coalesce(json_typeof(args), 'null')
            when expires <= '0' then format('expires is %s, with which it would never run; leave it out for never', expires)
            when taken is null or taken not in ('return', 'skip', 'raise', 'replace', 'debounce')
                then format('taken is %s; say return, skip, raise, replace or debounce', coalesce(taken, 'null'))
            when key is null and (period is not null or taken <> 'return') then 'period and taken say what a key means; give a key'
            when period <= '0' or period > '400 days' then format('period is %s; say more than 0 and up to 400 days', period)
            when period is not null and taken in ('replace', 'debounce')
                then format('a key that is held for a period cannot be taken => %L; say return, skip or raise', taken)
            when (at_most is not null) <> (taken = 'debounce') then 'at_most goes with taken => ''debounce'', which needs it'
            when at_most <= '0' then format('at_most is %s; say more than 0', at_most)
            when taken = 'debounce' and run_at is null and delay is null
                then 'taken => ''debounce'' puts a job off: give a delay or run_at'
            when array_ndims(tags) > 1 then 'tags is an array of arrays; say array[''a'', ''b'']'
            when array_position(tags, null) is not null then 'tags hold a null; leave it out: array_remove(tags, null)'
            when position('@' in task) > 0
                then format('task is %s; say task => %L, version => %L', task, split_part(task, '@', 1), split_part(task, '@', 2))
            when version < 1 then format('version is %s; the first is 1', version)
            when version is not null and attempts is not null
                then 'attempts is for plain tasks: the steps of a workflow are retried, each by its own policy'
            when version is not null and (period is not null or taken in ('replace', 'debounce'))
                then 'the key of a workflow is held until its record has left history: no period, and taken => return, skip or raise'
        end;
    begin
        if fault is not null then
            raise exception 'rowlock.enqueue: %', fault using errcode = 'invalid_parameter_value';
        end if;
        if octet_length(args::text) > 1048576 then
            raise exception 'rowlock.enqueue: args are % bytes long, 1 MiB is the limit', octet_length(args::text)
                using errcode = 'program_limit_exceeded';
        end if;
        begin
            perform args::jsonb;  -- json lets NUL and lone surrogates pass; no handler could be given them
        exception when others then
            raise exception 'rowlock.enqueue: args hold what JSON cannot carry: %', sqlerrm
                using errcode = 'invalid_parameter_value';
        end;
        select * into made from rowlock.put(
            rowlock.uuid7(), queue, task, args, coalesce(priority, 0)::smallint,
            coalesce(attempts, case when version is null then 10 else 1 end), run_at, delay, expires, tags, key,
            period, taken, at_most, priority is not null, version
        );
        if not made.created and (taken = 'raise' or (made.of_task <> task and taken <> 'skip')) then
            raise exception 'rowlock.enqueue: key % belongs to job % of task %', key, made.job, made.of_task
                using errcode = 'unique_violation';
        end if;
        return made.job;
    end
    $$;

-- Cancel from SQL: for other languages, triggers and psql. Python has its own statement, which says the same.
-- Returns 'cancelled': it never runs, retries or succeeds again; or 'too late': its outcome stands. There is no third case:
-- its row is locked by a statement before the one that decides, which therefore sees what became of it.
-- A workflow that has begun, and a child, end by the worker that claims them: it undoes what was done, and tells the parent.
create function rowlock.cancel(id uuid, by text default session_user, why text default null) returns text
    language plpgsql volatile
    as $$
    #variable_conflict use_variable
    declare
        live rowlock.jobs;
        ended_as text;
        kept_until timestamptz;
    begin
        loop
            select * into live from rowlock.jobs as job where job.id = cancel.id for update;
            exit when found;
            select past.state into ended_as from rowlock.history as past where past.id = cancel.id;
            if found then
                return case when ended_as = 'cancelled' then 'cancelled' else 'too late' end;
            end if;
            perform from rowlock.jobs as job where job.id = cancel.id;  -- an operator may have just put it back
            if not found then
                raise exception 'rowlock.cancel: there is no job %', id using errcode = 'no_data_found';
            end if;
        end loop;
        if live.cancel_at is not null then
            return 'cancelled';
        end if;
        insert into rowlock.events (kind, job, actor, details)
        values ('cancelled', id, by, json_strip_nulls(json_build_object(
            'task', live.task, 'queue', live.queue, 'why', why, 'state', live.state, 'waits_for', live.waits_for,
            'run_at', live.run_at, 'worker', case when live.state = 'running' then live.worker end
        )));
        if live.state = 'running' then
            update rowlock.jobs as job set cancel_at = rowlock.now() where job.id = cancel.id;
            perform rowlock.notify('rowlock:' || live.worker, 'cancel');
            return 'cancelled';
        end if;
        if live.parent is not null or (live.version is not null and (live.claims > 0 or live.wakes > 0)) then
            update rowlock.jobs as job
            set cancel_at = rowlock.now(), state = 'ready', waits_for = null, reason = null, wakes_at = null,
                run_at = case live.state when 'ready' then least(live.run_at, rowlock.now()) else rowlock.now() end
            where job.id = cancel.id;
            if exists (select from rowlock.parked where parked.queue = live.queue) then
                perform rowlock.notify(rowlock.channel(live.queue), '');
            end if;
            return 'cancelled';
        end if;
        kept_until := rowlock.now() + coalesce(
            (select asked.keep_cancelled from rowlock.queues as asked where asked.name = live.queue), interval '7 days'
        );
        delete from rowlock.jobs as job where job.id = cancel.id;
        if live.version is null then
            delete from rowlock.keys as held where held.key = live.key and held.job = cancel.id;
        else
            update rowlock.keys as held set until = kept_until where held.key = live.key and held.job = cancel.id;
        end if;
        insert into rowlock.history (
            id, queue, task, state, priority, failures, crashes, claims, attempts, run_at, created_at, started_at, ended_at,
            expires_on, worker, args, key, tags, reason, errors, progress, version, parent
        )
        values (
            live.id, live.queue, live.task, 'cancelled', live.priority, live.failures, live.crashes, live.claims,
            live.attempts, live.run_at, live.created_at, live.started_at, rowlock.now(), (kept_until at time zone 'UTC')::date,
            live.worker, live.args, live.key, live.tags, 'asked', live.errors, live.progress, live.version, live.parent
        );
        perform rowlock.notify('rowlock:' || waiter.listener, '') from rowlock.waiters as waiter where waiter.job = cancel.id;
        return 'cancelled';
    end
    $$;

-- Store a signal for a workflow, and wake it if it is parked. Returns 'sent', 'duplicate', 'ended', 'unknown' or 'no workflow',
-- the job that was meant, and how that ended, or 'cancelling'. `target` is the id of a job, or else a workflow's key.
-- The job's row is locked by a statement before those that decide: whoever parks the job compares the wakes of that row, and
-- whoever ends it deletes the row, so a signal is there to be read before the job parks, or wakes it afterwards, or is refused.
-- Numbers are given under the same lock. A signal that was there before, by its id or its key, wakes nobody.
-- With the owner's rights, because who may enqueue may not change a job, nor read history. It can be used for nothing else:
-- it adds to the signals of a live workflow and lets that look at them, as a worker might at any time; and it tells how a job
-- ended whose id or key one knows.
create function rowlock.send_signal(
    id uuid, target text, name text, payload json, key text, out answer text, out job uuid, out state text
)
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp
    as $$
    #variable_conflict use_variable
    declare
        -- Only as ids are usually written: 32 digits alone may be a hash, and somebody's key.
        is_id boolean := target ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$';
        live record;
        ended record;
        is_mine boolean;
        is_parked boolean;
        fault text := case
            when target is null then 'target is null; say the id of a job, or a workflow''s key'
            when name is null or octet_length(name) not between 1 and 200
                then format('a name takes 1 to 200 bytes, not %s', coalesce(octet_length(name)::text, 'null'))
            when name ~ '[[:cntrl:]/#]' or name <> btrim(name)
                then 'the name holds what cannot be seen, a / or a #, or begins or ends with a space'
            when octet_length(key) not between 1 and 500
                then format('a key takes 1 to 500 bytes, not %s', octet_length(key))
            when octet_length(payload::text) > 1048576
                then format('the payload is %s bytes long, 1 MiB is the limit', octet_length(payload::text))
        end;
    begin
        if fault is not null then
            raise exception 'rowlock.signal: %', fault using errcode = 'invalid_parameter_value';
        end if;
        begin
            perform payload::jsonb;  -- json lets NUL and lone surrogates pass; no workflow could be given them
        exception when others then
            raise exception 'rowlock.signal: the payload holds what JSON cannot carry: %', sqlerrm
                using errcode = 'invalid_parameter_value';
        end;
        loop
            job := case when is_id then target::uuid else (select held.job from rowlock.keys as held where held.key = target) end;
            answer := 'unknown';
            if job is null then
                return;
            end if;
            select one.state, one.queue, one.run_at, one.waits_for, one.wakes, one.wakes_at, one.cancel_at, one.version
            into live from rowlock.jobs as one where one.id = job for update;
            exit when found;
            select past.state, past.version, past.steps into ended from rowlock.history as past where past.id = job;
            if found then
                select past.signal ->> 'id' = id::text into is_mine
                from json_array_elements(ended.steps -> 'signals') as past (signal)
                where past.signal ->> 'id' = id::text or past.signal ->> 'key' = key;
                state := ended.state;
                answer := case
                    when ended.version is null then 'no workflow'
                    when is_mine then 'sent'
                    when not is_mine then 'duplicate'
                    else 'ended'
                end;
                return;
            end if;
            -- An operator may have just put it back; or it is gone, and its key another's.
            if not exists (select from rowlock.jobs as one where one.id = job)
                and (is_id or job = (select held.job from rowlock.keys as held where held.key = target)) then
                return;
            end if;
        end loop;
        is_mine := coalesce(
            (select true from rowlock.signals as one where one.id = send_signal.id and one.job = send_signal.job),
            (select false from rowlock.signals as one where one.job = send_signal.job and one.key = send_signal.key)
        );
        answer := case
            when live.version is null then 'no workflow'
            when is_mine then 'sent'
            when not is_mine then 'duplicate'
            when live.cancel_at is not null then 'ended'
            else 'sent'
        end;
        if answer <> 'sent' or is_mine then
            state := case when live.cancel_at is not null then 'cancelling' end;
            return;
        end if;
        insert into rowlock.signals (id, job, number, name, payload, key, sent_at)
        values (
            id, job, 1 + coalesce((select max(one.number) from rowlock.signals as one where one.job = send_signal.job), 0),
            name, payload, key, rowlock.now()
        );
        -- One that waits for its code, or for the end of a pause, goes on waiting for that.
        is_parked := live.wakes_at is not null and coalesce(live.waits_for in ('signal', 'children'), true);
        if not is_parked or live.wakes + 1 < live.wakes_at then
            update rowlock.jobs as one set wakes = live.wakes + 1 where one.id = job;
            return;
        end if;
        update rowlock.jobs as one
        set wakes = live.wakes + 1, wakes_at = null, state = 'ready', waits_for = null, reason = null,
            run_at = case when live.state = 'waiting' then rowlock.now() else least(live.run_at, rowlock.now()) end
        where one.id = job;
        if exists (select from rowlock.parked where parked.queue = live.queue) then
            perform rowlock.notify(rowlock.channel(live.queue), '');
        end if;
    end
    $$;

-- Send a signal from SQL: for other languages, triggers and psql. `target` is the id of a job as text, or else a workflow's
-- key; a key that looks like an id cannot be used here. Returns 'sent': it is stored, and will be taken by one wait at most;
-- 'duplicate': one with this key was sent before, and this one is nothing; or 'ended': the workflow has ended, or is being
-- cancelled, and takes no more.
create function rowlock.signal(target text, name text, payload json default null, key text default null) returns text
    language plpgsql volatile
    as $$
    declare
        sent record;
    begin
        select * into sent from rowlock.send_signal(rowlock.uuid7(), target, name, payload, key);
        if sent.answer = 'unknown' then
            raise exception 'rowlock.signal: there is no workflow %', target using errcode = 'no_data_found';
        end if;
        if sent.answer = 'no workflow' then
            raise exception 'rowlock.signal: job % is not a workflow, and takes no signals', sent.job
                using errcode = 'invalid_parameter_value';
        end if;
        return sent.answer;
    end
    $$;

-- The day on which an event of now expires; infinity while the part for that day is missing. Every rescue and every verb writes
-- an event in the same statement, and none of them may fail because nobody has made parts for a month.
create function rowlock.event_expiry() returns date
    language sql stable parallel safe
    as $$
    select case
        when to_regclass('rowlock.' || to_char(day - (day - date '0001-01-01' + 1) % 7, '"events_"YYYYMMDD')) is null
            then 'infinity'
        else day
    end
    from (select (rowlock.now() at time zone 'UTC')::date + 30 as day) as proper
    $$;

-- What operators did, and what upkeep did that they will ask about. Kept by the week of expiry, as history is by the day.
create table rowlock.events (
    id          uuid not null default rowlock.uuid7(),
    at          timestamptz not null default rowlock.now(),
    expires_on  date not null default rowlock.event_expiry(),
    kind        text not null,                  -- rescued, poisoned, …
    job         uuid,
    actor       text not null,                  -- who: an operator's name, or worker HOST:PID, as the client says
    login       text not null default session_user,  -- and as PostgreSQL does: no role may write this column
    details     json not null default '{}',
    primary key (id, expires_on)
) partition by range (expires_on);
-- Not a default partition: with one, a part could be neither attached nor detached without blocking those who write.
create table rowlock.events_spare partition of rowlock.events for values from ('infinity') to (maxvalue);
create index events_job on rowlock.events (job) where job is not null;
create index events_at on rowlock.events (at, id);
-- To count: an operator's verb may write a million events in between.
create index events_rescue on rowlock.events (at) where kind in ('rescued', 'poisoned');

-- Remove events of the spare part when they are as old as others get; returns how many there were. With the owner's rights,
-- because nobody else may remove events; it can be used for nothing else.
create function rowlock.clear_spare_events() returns integer
    language sql volatile security definer
    set search_path = pg_catalog, pg_temp
    as $$
    with gone as (
        delete from rowlock.events_spare where at < rowlock.now() - interval '30 days' returning id
    )
    select count(*)::integer from gone
    $$;

-- Which of these jobs there are, live or ended: a resent enqueue leaves them out, for their keys may be others' by now.
-- With the owner's rights, because who may enqueue may not read history. It shows whether a known id exists.
create function rowlock.sent_before(ids uuid[]) returns setof uuid
    language sql stable security definer
    set search_path = pg_catalog, pg_temp
    as $$
    select job.id from rowlock.jobs as job where job.id = any(ids)
    union
    select past.id from rowlock.history as past where past.id = any(ids)
    $$;

-- Take back what a resent enqueue inserted again, of jobs that have ended meanwhile; their keys are free.
-- With the owner's rights, because who may enqueue may not delete. It can be used for nothing else: no job but these is both
-- live and in history.
create function rowlock.take_back(ids uuid[]) returns void
    language sql volatile security definer
    set search_path = pg_catalog, pg_temp
    as $$
    with ended as materialized (
        select past.id from rowlock.history as past where past.id = any(ids)
    ),
    gone as (
        delete from rowlock.jobs as job
        where job.id = any(array(select ended.id from ended)) and job.state = 'ready' and job.claims = 0
        returning job.id, job.key
    )
    delete from rowlock.keys as held
    where held.key = any(array(select gone.key from gone where gone.key is not null))
        and held.job = any(array(select gone.id from gone))
    $$;

-- Pause a task, because its breaker says so; returns whether it does. A pause that holds is left as it is.
-- With the owner's rights, so that workers need none to pause what they like, in whose name they like.
create function rowlock.trip(task text, duration interval, why text) returns boolean
    language sql volatile security definer
    set search_path = pg_catalog, pg_temp
    as $$
    with made as (
        insert into rowlock.pauses as pause (kind, name, until, reason, actor, at)
        values ('task', task, rowlock.now() + duration, why, 'breaker', rowlock.now())
        on conflict (kind, name) do update
        set until = excluded.until, reason = excluded.reason, actor = excluded.actor, at = excluded.at
        where pause.until <= rowlock.now()
        returning name, until, reason, actor
    ),
    logged as (
        insert into rowlock.events (kind, actor, details)
        select 'paused', actor, json_build_object('task', name, 'why', reason, 'until', until) from made
    )
    select exists (select from made)
    $$;

-- End the pauses whose time is over, which any worker does; returns them. Each is an event of a kind of its own: `resumed` is an
-- operator's. With the owner's rights, so that a worker cannot delete a pause that holds. The pause of a schedule goes without an
-- event, once no slot can lie in it any more; one that somebody has locked goes the next time.
create function rowlock.end_pauses(actor text) returns table (kind text, name text)
    language sql volatile security definer
    set search_path = pg_catalog, pg_temp
    as $$
    with gone as (
        delete from rowlock.pauses as pause where pause.until <= rowlock.now() returning pause.kind, pause.name, pause.until
    ),
    logged as (
        insert into rowlock.events (kind, actor, details)
        select 'pause_over', end_pauses.actor, json_build_object(gone.kind, gone.name, 'until', gone.until) from gone
    ),
    over as (
        select schedule.name
        from rowlock.schedules as schedule
        where schedule.paused_until <= rowlock.now() and schedule.paused_until < schedule.next_at
        for update skip locked
    ),
    awake as (
        update rowlock.schedules as schedule
        set paused_at = null, paused_until = null, paused_by = null, paused_why = null
        where schedule.name = any(array(select over.name from over))
    )
    select gone.kind, gone.name from gone
    $$;

-- End a workflow as cancelled, now and without undo: for one whose code is gone or does not fit what it remembers, so that no
-- worker can undo it. Returns 'terminated'; 'no workflow'; 'unknown'; or the state in which it has ended before.
-- What workflow_settle does for a worker. First it locks the job, and then its parent, and waits for whoever has them: each
-- later statement sees what was recorded until then. A worker that runs it finds its row gone, and can record nothing more.
-- Its key is free. With the owner's rights, so that an operator needs none to change what workflows remember.
create function rowlock.terminate(
    target uuid, by_whom text, why text, keep interval, out answer text, out children uuid[]
)
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp
    as $$
    declare
        it rowlock.jobs;
        above rowlock.jobs;
    begin
        select * into it from rowlock.jobs as one where one.id = target for update;
        if not found then
            select case ended.reason when 'terminated' then 'terminated' else ended.state end into answer
            from rowlock.history as ended where ended.id = target;
            answer := coalesce(answer, 'unknown');
            children := array(select one.id from rowlock.jobs as one where one.parent = target and one.cancel_at is null);
            return;
        end if;
        if it.version is null then
            answer := 'no workflow';
            children := '{}';
            return;
        end if;
        if it.parent is not null then
            select * into above from rowlock.jobs as one where one.id = it.parent for update;
        end if;
        insert into rowlock.history (
            id, queue, task, state, priority, failures, crashes, claims, attempts, run_at, created_at, started_at, ended_at,
            expires_on, worker, args, key, tags, reason, errors, progress, version, parent, workflow_state, steps
        )
        values (
            it.id, it.queue, it.task, 'cancelled', it.priority, it.failures, it.crashes, it.claims, it.attempts, it.run_at,
            it.created_at, it.started_at, rowlock.now(),
            ((rowlock.now() + coalesce(
                (select asked.keep_cancelled from rowlock.queues as asked where asked.name = it.queue), keep
            )) at time zone 'UTC')::date,
            it.worker, it.args, it.key, it.tags, 'terminated', it.errors, it.progress, it.version, it.parent, it.workflow_state,
            (select folded from rowlock.folded(target) as folded)
        );
        delete from rowlock.steps as step where step.job = target;
        delete from rowlock.signals as sent where sent.job = target;
        delete from rowlock.keys as held where held.key = it.key and held.job = target;
        delete from rowlock.jobs as one where one.id = target;
        insert into rowlock.events (kind, job, actor, details)
        values ('terminated', target, by_whom, json_strip_nulls(json_build_object(
            'task', it.task, 'queue', it.queue, 'why', why, 'state', it.state, 'waits_for', it.waits_for, 'reason', it.reason,
            'key', it.key, 'worker', case it.state when 'running' then it.worker end
        )));
        if above.id is not null then
            update rowlock.steps as step
            set state = 'failed', ended_at = rowlock.now(), error = json_build_object(
                'outcome', 'cancelled', 'reason', 'terminated', 'task', it.task, 'failure', null
            )
            where step.child = target and step.ended_at is null;
            update rowlock.jobs as one set wakes = above.wakes + 1 where one.id = above.id;
            -- One that waits for its code, or for the end of a pause, goes on waiting for that.
            if above.wakes + 1 >= above.wakes_at and coalesce(above.waits_for in ('signal', 'children'), true) then
                update rowlock.jobs as one
                set state = 'ready', waits_for = null, wakes_at = null, run_at = rowlock.now()
                where one.id = above.id;
                perform rowlock.notify(rowlock.channel(above.queue), '') from rowlock.parked where parked.queue = above.queue limit 1;
            end if;
        end if;
        perform rowlock.notify('rowlock:' || waiter.listener, '') from rowlock.waiters as waiter where waiter.job = target;
        answer := 'terminated';
        children := array(select one.id from rowlock.jobs as one where one.parent = target and one.cancel_at is null);
    end
    $$;

-- Everybody may call a new function, unless told otherwise before it is committed.
revoke execute on function
    rowlock.now, rowlock.shown_state, rowlock.channel, rowlock.notifies, rowlock.notify, rowlock.token, rowlock.uuid7, rowlock.part_name, rowlock.make_part, rowlock.drop_part,
    rowlock.event_expiry, rowlock.clear_spare_events,
    rowlock.add_error, rowlock.folded, rowlock.unfolded, rowlock.branch, rowlock.resumed, rowlock.enqueue, rowlock.put,
    rowlock.make_way, rowlock.cancel, rowlock.sent_before, rowlock.take_back, rowlock.trip, rowlock.end_pauses, rowlock.signal, rowlock.send_signal,
    rowlock.terminate
from public;
