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
    waits_for   text check (waits_for in ('parents', 'signal', 'limit', 'code', 'pause')),
    reason      text,                           -- why it waits, in words
    errors      json[],                         -- the last ten
    progress    json,                           -- how far its attempt says it is: share, note, at
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
-- The queue is there to be counted by: then that reads no job.
create index jobs_waiting on rowlock.jobs (waits_for, task, queue) where state = 'waiting';

-- Make one part of a table that is kept by the day: created standalone, then attached, because CREATE … PARTITION OF waits
-- for readers and blocks settles.
create function rowlock.add_partition(partitioned text, part text, first date, after date) returns void
    language plpgsql volatile
    as $$
    begin
        execute format('create table rowlock.%I (like rowlock.%I including all)', part, partitioned);
        execute format(
            'alter table rowlock.%I attach partition rowlock.%I for values from (%L) to (%L)',
            partitioned, part, first, after
        );
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
    progress    json
) partition by range (expires_on);

create index history_id on rowlock.history (id);
-- What people look for among millions that went well.
create index history_trouble on rowlock.history (id) where state <> 'succeeded';

-- A key belongs to one live job; it is free again when that job ends.
create table rowlock.keys (
    key         text primary key check (octet_length(key) between 1 and 500),
    task        text not null,
    job         uuid not null
);

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

-- One row per live worker process and incarnation.
create table rowlock.workers (
    id          uuid primary key,
    host        text not null,
    pid         integer not null,
    queues      text[] not null,
    slots       integer not null,
    tasks       text[] not null,
    version     text not null,
    started_at  timestamptz not null,
    lease       timestamptz not null,           -- holds what it claimed until then
    stopping    boolean not null default false,
    -- Claims that found jobs, in the last minute in which there were any: how many, their jobs, their seconds.
    claims          integer not null default 0,
    claimed         integer not null default 0,
    claim_seconds   float8 not null default 0,
    claim_slowest   float8 not null default 0
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500);

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

-- Enqueue from SQL: for other languages, triggers and psql. Python has its own statement, which says the same.
-- Answers the job's id; with a key that is held, the id of the job that holds it.
create function rowlock.enqueue(
    task text, args json default '{}', queue text default 'default', priority integer default 0,
    run_at timestamptz default null, delay interval default null, key text default null, tags text[] default null,
    attempts integer default 10, expires interval default null
) returns uuid
    language plpgsql volatile
    as $$
    #variable_conflict use_variable
    declare
        new_id uuid := rowlock.uuid7();
        starts timestamptz := greatest(coalesce(run_at, rowlock.now() + delay), rowlock.now());
        holder rowlock.keys;
    begin
        if json_typeof(args) is distinct from 'object' then
            raise exception 'rowlock.enqueue: args must be a JSON object of arguments by name, not %', json_typeof(args)
                using errcode = 'invalid_parameter_value';
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
        -- As in the Python client: a held key's holder is looked for in the next statement, and may be gone by then.
        while key is not null loop
            insert into rowlock.keys (key, task, job) values (key, task, new_id) on conflict do nothing;
            exit when found;
            select * into holder from rowlock.keys as held where held.key = enqueue.key;
            if found and holder.task <> task then
                raise exception 'rowlock.enqueue: key % belongs to job % of task %', key, holder.job, holder.task
                    using errcode = 'unique_violation';
            elsif found then
                return holder.job;
            end if;
        end loop;
        insert into rowlock.jobs
            (id, queue, task, priority, attempts, run_at, created_at, expires_at, args, tags, key)
        values (
            new_id, queue, task, priority, attempts, starts, rowlock.now(), rowlock.now() + expires, args, tags, key
        );
        if starts <= rowlock.now() and exists (select from rowlock.parked where parked.queue = enqueue.queue) then
            perform pg_notify(rowlock.channel(queue), '');
        end if;
        return new_id;
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
