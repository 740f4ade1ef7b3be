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

-- Proof of one claim: about 104 random bits. gen_random_uuid() costs 1 µs where PostgreSQL was built with OpenSSL and
-- 4.5 µs where it reads /dev/urandom, a sixth of the whole claim; the session's generator is seeded from the same source.
create function rowlock.token() returns uuid
    language sql volatile parallel safe
    as $$
    select encode(int8send((random() * 9007199254740992)::bigint) || int8send((random() * 9007199254740992)::bigint), 'hex')::uuid
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
    failures    integer not null default 0,     -- attempts spent
    crashes     integer not null default 0,     -- attempts whose worker died; they are not spent
    claims      integer not null default 0,     -- attempts started, however they ended; never goes back
    attempts    integer not null check (attempts > 0),  -- how many may be spent
    run_at      timestamptz not null,
    created_at  timestamptz not null,
    started_at  timestamptz,                    -- when it was last claimed
    expires_at  timestamptz,                    -- not worth starting after this
    token       uuid,                           -- proof of the current claim, new for every row and claim
    worker      uuid,                           -- who holds, or last held, it
    args        json not null,                  -- json, not jsonb: stored as sent (jsonb makes 1e22 an int, -0.0 0.0)
    key         text check (octet_length(key) between 1 and 500),
    tags        text[],
    waits_for   text check (waits_for in ('parents', 'children', 'signal', 'limit', 'code', 'pause')),
    reason      text,                           -- why it waits, in words
    errors      json[],                         -- the last ten
    progress    json,                           -- how far its attempt says it is: share, note, at
    cancel_at   timestamptz,                    -- somebody asked, while it ran: however the attempt ends, the job is cancelled
    version     integer check (version > 0),    -- of a workflow's code; null: it is no workflow
    parent      uuid,                           -- the workflow whose child it is
    wakes       integer not null default 0,     -- signals sent to it and children of it that ended, so far
    wakes_at    integer,                        -- parked: ready when there have been so many wakes, or when run_at has come
    workflow_state json,                        -- what it says of itself, for those who look
    -- A workflow has steps to undo, and a child a parent to tell: both end only by a worker that has claimed them.
    check (cancel_at is null or state = 'running' or version is not null or parent is not null),
    check (wakes_at is null or state <> 'running'),
    check ((state = 'running') = (token is not null)),
    check ((state = 'waiting') = (waits_for is not null))
) with (
    -- A queue's table is small and churns: vacuum by count of dead rows, not by share, and leave room for HOT updates.
    autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.0, autovacuum_vacuum_insert_threshold = 100000,
    autovacuum_vacuum_cost_delay = 1, toast.autovacuum_vacuum_scale_factor = 0.0, toast.autovacuum_vacuum_threshold = 5000
);

-- The claim's index: per queue and priority an exact range of (run_at, id).
create index jobs_ready on rowlock.jobs (queue, priority, run_at, id) where state = 'ready';
-- What a worker holds: rescue and reconciliation.
create index jobs_running on rowlock.jobs (worker) where state = 'running';
-- What a worker is asked to cancel.
create index jobs_cancelling on rowlock.jobs (worker) where cancel_at is not null;
-- What is not worth starting any more, also where nobody claims.
create index jobs_expiring on rowlock.jobs (expires_at) where expires_at is not null and state <> 'running';
-- The queue is there to be counted by: then that reads no job.
create index jobs_waiting on rowlock.jobs (waits_for, task, queue) where state = 'waiting';
-- The children of a workflow.
create index jobs_parent on rowlock.jobs (parent) where parent is not null;
-- Workflows, for those who look.
create index jobs_workflows on rowlock.jobs (id) where version is not null;

-- The name of a part of history or events, by its first day; refuses what is no first day of any.
-- Parts are made and dropped by functions that have their owner's rights (`security definer`), because workers need not own
-- our tables. So nothing is taken on trust there: names are made from a date, every other name is written out, and no
-- search_path but this one counts: by the caller's, a function of the caller's could be found and run as the owner.
create function rowlock.part_name(partitioned text, first date) returns text
    language plpgsql immutable strict
    set search_path = pg_catalog, pg_temp
    as $$
    declare
        days integer := case partitioned when 'history' then 1 when 'events' then 7 end;
    begin
        -- An infinite date has no digits, and the name without them is that of the whole table.
        if days is null or not isfinite(first) or (first - date '0001-01-01' + 1) % days <> 0
            or first not between date '1970-01-01' and date '9998-12-31' then
            raise exception 'rowlock: no part of % begins on %', partitioned, first
                using errcode = 'invalid_parameter_value';
        end if;
        return partitioned || to_char(first, '_YYYYMMDD');
    end
    $$;

-- Make one part of a table that is kept by the day or the week: created standalone, then attached, because
-- CREATE … PARTITION OF waits for readers and blocks settles.
create function rowlock.make_part(partitioned text, first date) returns void
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp
    as $$
    declare
        part text := rowlock.part_name(partitioned, first);
        after date := first + case partitioned when 'history' then 1 else 7 end;
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
create function rowlock.drop_part(partitioned text, first date) returns void
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp
    set lock_timeout = '200ms'
    as $$
    declare
        part text := rowlock.part_name(partitioned, first);
        after date := first + case partitioned when 'history' then 1 else 7 end;
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

-- Ended jobs, partitioned by the day on which they expire.
create table rowlock.history (
    id          uuid not null,
    queue       text not null,
    task        text not null,
    state       text not null check (state in ('succeeded', 'failed', 'cancelled', 'skipped')),
    priority    smallint not null,
    failures    integer not null,
    crashes     integer not null,
    claims      integer not null,
    attempts    integer not null,
    run_at      timestamptz not null,
    created_at  timestamptz not null,
    started_at  timestamptz,
    ended_at    timestamptz not null,
    expires_on  date not null,                  -- the day after which nobody wants it: retention drops whole days
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
    steps       json                            -- of a workflow: what rowlock.steps held, and the signals that nobody took
) partition by range (expires_on);

create index history_id on rowlock.history (id);
-- What people look for among millions that went well.
create index history_trouble on rowlock.history (id) where state <> 'succeeded';
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
    state       text not null check (state in ('open', 'retrying', 'done', 'failed')),
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
) with (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 1);
-- Where a child's outcome goes.
create index steps_child on rowlock.steps (child) where child is not null;

-- Signals to live workflows, in the order in which they came: stored first, taken by one wait at most.
create table rowlock.signals (
    id          uuid primary key default rowlock.uuid7(),
    job         uuid not null,
    name        text not null check (octet_length(name) between 1 and 200),
    payload     json,
    key         text check (octet_length(key) between 1 and 500),  -- a second one with it is no second one
    sent_at     timestamptz not null,
    taken_at    timestamptz                     -- kept until the workflow ends, so that its key is known
) with (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000);
create index signals_job on rowlock.signals (job, id);
create unique index signals_key on rowlock.signals (job, key) where key is not null;

-- A key belongs to one live job; it is free again when that job ends, but one with a period not before that has passed,
-- unless its job has failed or was cancelled. Who gives the key of a live job to another locks that job's row first.
create table rowlock.keys (
    key         text primary key check (octet_length(key) between 1 and 500),
    task        text not null,
    job         uuid not null,
    until       timestamptz                     -- the end of its period, if it has one
);
create index keys_until on rowlock.keys (until) where until is not null;

-- An operator's settings for a queue; no row means the defaults.
create table rowlock.queues (
    name        text primary key check (octet_length(name) between 1 and 200),
    -- At most so long: history has a partition for each day.
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
    -- Not everybody may read arguments, and so what was declared and edited; that something was, is no secret.
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
    stopping    boolean not null default false,
    stuck       integer not null default 0,     -- attempts that timed out and go on all the same
    -- Claims that found jobs, in the last minute in which there were any: how many, their jobs, their seconds.
    claims          integer not null default 0,
    claimed         integer not null default 0,
    claim_seconds   float8 not null default 0,
    claim_slowest   float8 not null default 0
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500);

-- Workers that hold the advisory lock of their id: whoever is here and does not hold it was killed, or lost its connection.
-- Unlogged: a crash of the server drops every session's lock, and with them these rows, so that nobody looks dead by it.
create unlogged table rowlock.present (
    worker      uuid primary key,
    server      timestamptz not null            -- when the server that has the lock was started: it goes with that server
);

-- What a worker did in a minute, by queue and task: rates and durations are read from here, kept for a day.
-- Rows are written a few times while their minute lasts, each time whole, so that a repeated write counts nothing twice.
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
    durations   integer[] not null,             -- how many in each bucket, from the first that has any: '[7:9]={3,0,1}'
    primary key (minute, worker, queue, task)
) with (fillfactor = 70);

-- Workers with free slots and nothing to do: an enqueue notifies only if it finds one here. A transaction that notifies
-- holds a global lock until its commit is on disk: 3.2k instead of 12.5k enqueues a second from 32 producers.
-- Unlogged: a crash empties it, and every worker parks again when it reconnects.
create unlogged table rowlock.parked (
    queue       text not null,
    worker      uuid not null,
    primary key (queue, worker)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 200);

-- Who waits for the end of a job: a settle notifies the listener of each job that has one here, and nobody else.
-- Unlogged: a crash empties it, and every listener enters again what it waits for when it reconnects.
create unlogged table rowlock.waiters (
    job         uuid not null,
    listener    uuid not null,                  -- one per process; its channel is `rowlock:` and this
    at          timestamptz not null,
    primary key (job, listener)
) with (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);

-- Make way for a job whose key is held: free the key, or, if `replaces`, give its holder the new job's arguments. Answers
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
        elsif not replaces or held.task <> task then
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
        if due <= rowlock.now() and (due, coalesce(priority, live.priority)) <> (live.run_at, live.priority)
            and exists (select from rowlock.parked where parked.queue = live.queue) then
            perform pg_notify(rowlock.channel(live.queue), 'below');
        end if;
        return false;
    end
    $$;

-- Insert one job and notify if a worker is parked on its queue; if its key is held, what that means is what `taken` says.
-- Answers the job that has the key, its task and queue, and whether it was made here. `replace` and `debounce` give its
-- arguments to a holder of the same task that does not run; for the others, what to tell the caller is the caller's to say.
-- A held key's holder is looked for in the next statement, for in the same one a concurrent winner is not visible; it may be
-- gone by then, or make way: then it is tried again.
create function rowlock.put(
    id uuid, queue text, task text, args json, priority smallint, attempts integer, run_at timestamptz, delay interval,
    lifetime interval, tags text[], key text, period interval, taken text, at_most interval, is_priority_named boolean,
    out job uuid, out of_task text, out on_queue text, out created boolean
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
            (id, queue, task, priority, attempts, run_at, created_at, expires_at, args, tags, key)
        values (
            id, queue, task, priority, attempts, starts, rowlock.now(), starts + lifetime, args, tags, key
        );
        if starts <= rowlock.now() and exists (select from rowlock.parked where parked.queue = put.queue) then
            perform pg_notify(rowlock.channel(queue), '');
        end if;
    end
    $$;

-- Enqueue from SQL: for other languages, triggers and psql. Python has its own statements, which say the same.
-- Answers the job's id; with a key that is held, the id of the job that holds it. What else a held key can mean is `taken`:
-- return, skip, raise, replace or debounce; with a `period`, the key of a job that succeeds is held until then.
create function rowlock.enqueue(
    task text, args json default '{}', queue text default 'default', priority integer default null,
    run_at timestamptz default null, delay interval default null, key text default null, tags text[] default null,
    attempts integer default 10, expires interval default null, period interval default null,
    taken text default 'return', at_most interval default null
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
            rowlock.uuid7(), queue, task, args, coalesce(priority, 0)::smallint, attempts, run_at, delay, expires, tags, key,
            period, taken, at_most, priority is not null
        );
        if not made.created and (taken = 'raise' or (made.of_task <> task and taken <> 'skip')) then
            raise exception 'rowlock.enqueue: key % belongs to job % of task %', key, made.job, made.of_task
                using errcode = 'unique_violation';
        end if;
        return made.job;
    end
    $$;

-- Cancel from SQL: for other languages, triggers and psql. Python has its own statement, which says the same.
-- Answers 'cancelled': it never runs, retries or succeeds again; or 'too late': its outcome stands. There is no third case:
-- its row is locked by a statement before the one that decides, which therefore sees what became of it.
create function rowlock.cancel(id uuid, by text default session_user, why text default null) returns text
    language plpgsql volatile
    as $$
    #variable_conflict use_variable
    declare
        live rowlock.jobs;
        ended_as text;
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
            perform pg_notify('rowlock:' || live.worker, 'cancel');
            return 'cancelled';
        end if;
        delete from rowlock.jobs as job where job.id = cancel.id;
        delete from rowlock.keys as held where held.key = live.key and held.job = cancel.id;
        insert into rowlock.history (
            id, queue, task, state, priority, failures, crashes, claims, attempts, run_at, created_at, started_at, ended_at,
            expires_on, worker, args, key, tags, reason, errors, progress
        )
        values (
            live.id, live.queue, live.task, 'cancelled', live.priority, live.failures, live.crashes, live.claims,
            live.attempts, live.run_at, live.created_at, live.started_at, rowlock.now(),
            ((rowlock.now() + coalesce(
                (select asked.keep_cancelled from rowlock.queues as asked where asked.name = live.queue), interval '7 days'
            )) at time zone 'UTC')::date,
            live.worker, live.args, live.key, live.tags, 'asked', live.errors, live.progress
        );
        perform pg_notify('rowlock:' || waiter.listener, '') from rowlock.waiters as waiter where waiter.job = cancel.id;
        return 'cancelled';
    end
    $$;

-- What operators did, and what upkeep did that they will ask about. Kept by day like history.
create table rowlock.events (
    id          uuid not null default rowlock.uuid7(),
    at          timestamptz not null default rowlock.now(),
    expires_on  date not null default (rowlock.now() at time zone 'UTC')::date + 30,
    kind        text not null,                  -- rescued, poisoned, …
    job         uuid,
    actor       text not null,                  -- who: an operator's name, or worker HOST:PID
    details     json not null default '{}'
) partition by range (expires_on);
create index events_job on rowlock.events (job) where job is not null;
create index events_at on rowlock.events (at, id);
-- To count: an operator's verb may write a million events in between.
create index events_rescue on rowlock.events (at) where kind in ('rescued', 'poisoned');

-- Which of these jobs there are, live or ended: a resent enqueue leaves them out, for their keys may be others' by now.
-- With the owner's rights, because who may enqueue may not read history. It tells whether an id that one knows exists.
create function rowlock.sent_before(ids uuid[]) returns setof uuid
    language sql stable security definer
    set search_path = pg_catalog, pg_temp
    as $$
    select job.id from rowlock.jobs as job where job.id = any(ids)
    union
    select past.id from rowlock.history as past where past.id = any(ids)
    $$;

-- Take back what a resent enqueue inserted anew of jobs that have ended meanwhile; their keys are free.
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

-- Pause a task, because its breaker says so; answers whether it does. A pause that holds is left as it is.
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

-- Everybody may call a new function, unless told otherwise before it is committed.
revoke execute on function
    rowlock.now, rowlock.channel, rowlock.token, rowlock.uuid7, rowlock.part_name, rowlock.make_part, rowlock.drop_part,
    rowlock.add_error, rowlock.enqueue, rowlock.put, rowlock.make_way, rowlock.cancel, rowlock.sent_before,
    rowlock.take_back, rowlock.trip
from public;
