-- The sum of the migrations, as PostgreSQL describes it. People, a test and the doctor read it.
-- Written by: ./run python -m tests.store.snapshot

create table rowlock.breakers (
    task text not null,
    failed_at timestamp with time zone[] not null,
    constraint breakers_pkey PRIMARY KEY (task),
    constraint breakers_task_check CHECK (((octet_length(task) >= 1) AND (octet_length(task) <= 200)))
);

create table rowlock.duties (
    name text not null,
    begun_at timestamp with time zone not null default '-infinity'::timestamp with time zone,
    done boolean not null default true,
    constraint duties_pkey PRIMARY KEY (name)
) with (fillfactor=20, autovacuum_vacuum_scale_factor=0.0, autovacuum_vacuum_threshold=200);

create table rowlock.events (
    id uuid not null default rowlock.uuid7(),
    at timestamp with time zone not null default rowlock.now(),
    expires_on date not null default rowlock.event_expiry(),
    kind text not null,
    job uuid,
    actor text not null,
    login text not null default SESSION_USER,
    details json not null default '{}'::json,
    constraint events_pkey PRIMARY KEY (id, expires_on)
) partition by RANGE (expires_on);
CREATE INDEX events_at ON ONLY rowlock.events USING btree (at, id);
CREATE INDEX events_job ON ONLY rowlock.events USING btree (job) WHERE (job IS NOT NULL);
CREATE INDEX events_rescue ON ONLY rowlock.events USING btree (at) WHERE (kind = ANY (ARRAY['rescued'::text, 'poisoned'::text]));

create table rowlock.firings (
    schedule text not null,
    slot timestamp with time zone not null,
    job uuid,
    reason text,
    at timestamp with time zone not null,
    constraint firings_pkey PRIMARY KEY (schedule, slot)
);
CREATE INDEX firings_at ON rowlock.firings USING btree (at);

create table rowlock.history (
    id uuid not null,
    queue text not null,
    task text not null,
    state text not null,
    priority smallint not null,
    failures integer not null,
    crashes integer not null,
    claims integer not null,
    attempts integer not null,
    run_at timestamp with time zone not null,
    created_at timestamp with time zone not null,
    started_at timestamp with time zone,
    ended_at timestamp with time zone not null,
    expires_on date not null,
    worker uuid,
    args json not null,
    result json,
    key text,
    tags text[],
    reason text,
    errors json[],
    progress json,
    version integer,
    parent uuid,
    workflow_state json,
    steps json,
    constraint history_pkey PRIMARY KEY (id, expires_on),
    constraint history_state_check CHECK ((state = ANY (ARRAY['succeeded'::text, 'failed'::text, 'cancelled'::text])))
) partition by RANGE (expires_on);
CREATE INDEX history_ended ON ONLY rowlock.history USING btree (ended_at, id);
CREATE INDEX history_trouble ON ONLY rowlock.history USING btree (id) WHERE (state <> 'succeeded'::text);
CREATE INDEX history_trouble_ended ON ONLY rowlock.history USING btree (ended_at, id) INCLUDE (expires_on) WHERE (state <> 'succeeded'::text);
CREATE INDEX history_workflows ON ONLY rowlock.history USING btree (id) WHERE (version IS NOT NULL);

create table rowlock.jobs (
    id uuid not null,
    queue text not null,
    task text not null,
    state text not null default 'ready'::text,
    priority smallint not null default 0,
    begun boolean default false,
    failures integer not null default 0,
    crashes integer not null default 0,
    claims integer not null default 0,
    attempts integer not null,
    run_at timestamp with time zone not null,
    created_at timestamp with time zone not null,
    started_at timestamp with time zone,
    expires_at timestamp with time zone,
    token uuid,
    worker uuid,
    args json not null,
    key text,
    tags text[],
    waits_for text,
    reason text,
    errors json[],
    progress json,
    cancel_at timestamp with time zone,
    version integer,
    parent uuid,
    wakes integer not null default 0,
    wakes_at integer,
    workflow_state json,
    constraint args_of_1_mib_at_most CHECK (((pg_column_size(args) <= (1048576 + 4)) AND ((pg_column_compression(args) IS NULL) OR (claims > 0) OR (state <> 'ready'::text) OR (octet_length((args)::text) <= 1048576)))),
    constraint jobs_attempts_check CHECK ((attempts > 0)),
    constraint jobs_check CHECK (((cancel_at IS NULL) OR (state = 'running'::text) OR (version IS NOT NULL) OR (parent IS NOT NULL))),
    constraint jobs_check1 CHECK (((wakes_at IS NULL) OR (state <> 'running'::text))),
    constraint jobs_check2 CHECK (((state = 'running'::text) = (token IS NOT NULL))),
    constraint jobs_check3 CHECK (((state = 'waiting'::text) = (waits_for IS NOT NULL))),
    constraint jobs_key_check CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 500))),
    constraint jobs_pkey PRIMARY KEY (id),
    constraint jobs_priority_check CHECK (((priority >= '-4'::integer) AND (priority <= 4))),
    constraint jobs_queue_check CHECK (((octet_length(queue) >= 1) AND (octet_length(queue) <= 200))),
    constraint jobs_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'ready'::text, 'running'::text]))),
    constraint jobs_task_check CHECK (((octet_length(task) >= 1) AND (octet_length(task) <= 200))),
    constraint jobs_version_check CHECK ((version > 0)),
    constraint jobs_waits_for_check CHECK ((waits_for = ANY (ARRAY['children'::text, 'signal'::text, 'code'::text, 'pause'::text, 'suspect'::text]))),
    constraint tags_32_at_most CHECK (((tags IS NULL) OR ((cardinality(tags) <= 32) AND (pg_column_size(tags) <= 8192) AND ((pg_column_compression(tags) IS NULL) OR (claims > 0) OR (state <> 'ready'::text) OR (octet_length(array_to_string(tags, ''::text)) <= 8192))))),
    constraint tags_are_a_list_without_null CHECK (((tags IS NULL) OR ((COALESCE(array_ndims(tags), 1) = 1) AND (array_position(tags, NULL::text) IS NULL))))
) with (vacuum_truncate=off, autovacuum_vacuum_scale_factor=0.0, autovacuum_vacuum_threshold=5000, autovacuum_vacuum_insert_scale_factor=0.0, autovacuum_vacuum_insert_threshold=100000, autovacuum_vacuum_cost_delay=1, toast.vacuum_truncate=off, toast.autovacuum_vacuum_scale_factor=0.0, toast.autovacuum_vacuum_threshold=5000);
CREATE INDEX jobs_blocked ON rowlock.jobs USING btree (run_at) WHERE ((waits_for = 'code'::text) AND (version IS NOT NULL) AND (run_at > started_at));
CREATE INDEX jobs_cancelling ON rowlock.jobs USING btree (worker) WHERE ((cancel_at IS NOT NULL) AND (state = 'running'::text));
CREATE INDEX jobs_expiring ON rowlock.jobs USING btree (expires_at) WHERE ((expires_at IS NOT NULL) AND (state <> 'running'::text) AND (parent IS NULL) AND ((version IS NULL) OR (claims = 0)));
CREATE INDEX jobs_parent ON rowlock.jobs USING btree (parent) WHERE (parent IS NOT NULL);
CREATE INDEX jobs_parked ON rowlock.jobs USING btree (queue, run_at) WHERE (wakes_at IS NOT NULL);
CREATE INDEX jobs_ready ON rowlock.jobs USING btree (queue, priority, run_at, id) WHERE (state = 'ready'::text);
CREATE INDEX jobs_refused ON rowlock.jobs USING btree (task, queue, COALESCE(version, 0), COALESCE(((reason ~~ 'unknown task%'::text) OR (reason ~~ 'unknown version%'::text)), false), COALESCE(worker, '00000000-0000-0000-0000-000000000000'::uuid)) WHERE ((waits_for = 'code'::text) AND (COALESCE(reason, ''::text) !~~ 'PostgreSQL refuses to %'::text));
CREATE INDEX jobs_running ON rowlock.jobs USING btree (worker, started_at) WHERE (state = 'running'::text);
CREATE INDEX jobs_suspect ON rowlock.jobs USING btree (run_at, id) WHERE (waits_for = 'suspect'::text);
CREATE INDEX jobs_waiting ON rowlock.jobs USING btree (waits_for, task, queue) WHERE (state = 'waiting'::text);
CREATE INDEX jobs_workflows ON rowlock.jobs USING btree (id) WHERE (version IS NOT NULL);

create table rowlock.keys (
    key text not null,
    task text not null,
    job uuid not null,
    until timestamp with time zone,
    constraint keys_key_check CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 500))),
    constraint keys_pkey PRIMARY KEY (key)
) with (vacuum_truncate=off);
CREATE INDEX keys_until ON rowlock.keys USING btree (until) WHERE (until IS NOT NULL);

create table rowlock.migrations (
    version integer not null,
    name text not null,
    compatible integer not null,
    applied_at timestamp with time zone not null default now(),
    constraint migrations_pkey PRIMARY KEY (version)
);

create table rowlock.minutes (
    minute timestamp with time zone not null,
    worker uuid not null,
    queue text not null,
    task text not null,
    claimed integer not null,
    succeeded integer not null,
    failed integer not null,
    cancelled integer not null,
    retried integer not null,
    seconds double precision not null,
    slowest double precision not null,
    durations numeric not null,
    waited double precision not null,
    longest double precision not null,
    waits numeric not null,
    constraint minutes_pkey PRIMARY KEY (minute, worker, queue, task)
) with (fillfactor=70);

create unlogged table rowlock.parkings (
    number bigint not null default nextval('rowlock.parking_number'::regclass),
    queue text not null,
    worker uuid not null,
    constraint parkings_pkey PRIMARY KEY (queue, number, worker)
) with (vacuum_truncate=off, fillfactor=50, autovacuum_vacuum_scale_factor=0.0, autovacuum_vacuum_threshold=200);

create table rowlock.pauses (
    kind text not null,
    name text not null,
    until timestamp with time zone,
    reason text,
    actor text not null,
    at timestamp with time zone not null,
    constraint pauses_kind_check CHECK ((kind = ANY (ARRAY['queue'::text, 'task'::text]))),
    constraint pauses_name_check CHECK (((octet_length(name) >= 1) AND (octet_length(name) <= 200))),
    constraint pauses_pkey PRIMARY KEY (kind, name)
);

create unlogged table rowlock.present (
    worker uuid not null,
    server timestamp with time zone not null,
    suspected_at timestamp with time zone,
    constraint present_pkey PRIMARY KEY (worker)
);

create table rowlock.queues (
    name text not null,
    keep_succeeded interval,
    keep_failed interval,
    keep_cancelled interval,
    constraint queues_keep_cancelled_check CHECK (((keep_cancelled >= '00:00:00'::interval) AND (keep_cancelled <= '400 days'::interval))),
    constraint queues_keep_failed_check CHECK (((keep_failed >= '00:00:00'::interval) AND (keep_failed <= '400 days'::interval))),
    constraint queues_keep_succeeded_check CHECK (((keep_succeeded >= '00:00:00'::interval) AND (keep_succeeded <= '400 days'::interval))),
    constraint queues_name_check CHECK (((octet_length(name) >= 1) AND (octet_length(name) <= 200))),
    constraint queues_pkey PRIMARY KEY (name)
);

create table rowlock.schedules (
    name text not null,
    cron text,
    tz text,
    every interval,
    task text not null,
    args json not null,
    queue text not null,
    priority smallint not null,
    attempts integer not null,
    version integer,
    expires interval,
    tags text[],
    jitter interval not null,
    overlap text not null,
    catch_up integer not null,
    at_boot boolean not null,
    declared json,
    edits json,
    is_declared boolean not null default (declared IS NOT NULL),
    is_edited boolean not null default (edits IS NOT NULL),
    paused_at timestamp with time zone,
    paused_until timestamp with time zone,
    paused_by text,
    paused_why text,
    next_at timestamp with time zone not null,
    last_at timestamp with time zone,
    held timestamp with time zone,
    booted_at timestamp with time zone,
    jobs uuid[] not null default '{}'::uuid[],
    created_at timestamp with time zone not null,
    constraint schedules_attempts_check CHECK ((attempts > 0)),
    constraint schedules_catch_up_check CHECK ((catch_up >= 0)),
    constraint schedules_check CHECK (((cron IS NULL) <> (every IS NULL))),
    constraint schedules_check1 CHECK (((tz IS NULL) OR (cron IS NOT NULL))),
    constraint schedules_every_check CHECK ((every > '00:00:00'::interval)),
    constraint schedules_jitter_check CHECK ((jitter >= '00:00:00'::interval)),
    constraint schedules_name_check CHECK (((octet_length(name) >= 1) AND (octet_length(name) <= 90))),
    constraint schedules_overlap_check CHECK ((overlap = ANY (ARRAY['allow'::text, 'skip'::text, 'queue'::text, 'replace'::text]))),
    constraint schedules_pkey PRIMARY KEY (name),
    constraint schedules_priority_check CHECK (((priority >= '-4'::integer) AND (priority <= 4))),
    constraint schedules_queue_check CHECK (((octet_length(queue) >= 1) AND (octet_length(queue) <= 200))),
    constraint schedules_task_check CHECK (((octet_length(task) >= 1) AND (octet_length(task) <= 200))),
    constraint schedules_version_check CHECK ((version > 0))
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0.0, autovacuum_vacuum_threshold=500);
CREATE INDEX schedules_due ON rowlock.schedules USING btree (next_at);
CREATE INDEX schedules_held ON rowlock.schedules USING btree (held) WHERE (held IS NOT NULL);
CREATE INDEX schedules_paused ON rowlock.schedules USING btree (paused_until) WHERE (paused_until IS NOT NULL);

create table rowlock.signals (
    id uuid not null default rowlock.uuid7(),
    job uuid not null,
    number integer not null,
    name text not null,
    payload json,
    key text,
    sent_at timestamp with time zone not null,
    taken_at timestamp with time zone,
    constraint signals_key_check CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 500))),
    constraint signals_name_check CHECK (((octet_length(name) >= 1) AND (octet_length(name) <= 200))),
    constraint signals_pkey PRIMARY KEY (id)
) with (vacuum_truncate=off, autovacuum_vacuum_scale_factor=0.0, autovacuum_vacuum_threshold=5000, toast.vacuum_truncate=off);
CREATE UNIQUE INDEX signals_job ON rowlock.signals USING btree (job, number);
CREATE UNIQUE INDEX signals_key ON rowlock.signals USING btree (job, key) WHERE (key IS NOT NULL);

create table rowlock.steps (
    job uuid not null,
    key text not null,
    position integer not null,
    kind text not null,
    state text not null,
    input json,
    value json,
    error json,
    attempts integer not null default 0,
    until timestamp with time zone,
    child uuid,
    form json,
    started_at timestamp with time zone not null,
    ended_at timestamp with time zone,
    constraint steps_key_check CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 500))),
    constraint steps_kind_check CHECK ((kind = ANY (ARRAY['start'::text, 'step'::text, 'transaction'::text, 'sleep'::text, 'signal'::text, 'child'::text, 'any'::text, 'now'::text, 'patched'::text, 'undo'::text, 'failure'::text]))),
    constraint steps_pkey PRIMARY KEY (job, key),
    constraint steps_state_check CHECK ((state = ANY (ARRAY['open'::text, 'retrying'::text, 'done'::text, 'failed'::text, 'closed'::text])))
) with (vacuum_truncate=off, autovacuum_vacuum_scale_factor=0.0, autovacuum_vacuum_threshold=5000, autovacuum_vacuum_cost_delay=1, toast.vacuum_truncate=off);
CREATE INDEX steps_approval ON rowlock.steps USING btree (job) WHERE ((kind = 'signal'::text) AND (state = 'open'::text) AND (form IS NOT NULL));
CREATE INDEX steps_child ON rowlock.steps USING btree (child) WHERE (child IS NOT NULL);
CREATE INDEX steps_due ON rowlock.steps USING btree (job, until) WHERE (state = ANY (ARRAY['open'::text, 'retrying'::text]));

create unlogged table rowlock.waiters (
    job uuid not null,
    listener uuid not null,
    at timestamp with time zone not null,
    constraint waiters_pkey PRIMARY KEY (job, listener)
) with (vacuum_truncate=off, autovacuum_vacuum_scale_factor=0.0, autovacuum_vacuum_threshold=1000);

create table rowlock.workers (
    id uuid not null,
    host text not null,
    pid integer not null,
    queues text[] not null,
    slots integer not null,
    tasks text[] not null,
    schedules text[] not null default '{}'::text[],
    version text not null,
    started_at timestamp with time zone not null,
    lease timestamp with time zone not null,
    lasts interval not null,
    dead boolean not null default false,
    stopping boolean not null default false,
    stuck integer not null default 0,
    restarts integer not null default 0,
    fault text,
    blocked double precision,
    blocked_by text,
    failing text,
    failing_since timestamp with time zone,
    claims integer not null default 0,
    claimed integer not null default 0,
    claim_seconds double precision not null default 0,
    claim_slowest double precision not null default 0,
    constraint workers_pkey PRIMARY KEY (id)
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0.0, autovacuum_vacuum_threshold=500);
CREATE INDEX workers_lease ON rowlock.workers USING btree (lease);
CREATE INDEX workers_own ON rowlock.workers USING btree (id, lease);

CREATE OR REPLACE FUNCTION rowlock.add_error(errors json[], failure text, attempt integer, worker uuid, started_at timestamp with time zone)
 RETURNS json[]
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN CASE WHEN (failure IS NULL) THEN errors ELSE ((errors || (((failure)::jsonb || jsonb_build_object('attempt', attempt, 'worker', worker, 'started_at', started_at, 'ended_at', rowlock.now())))::json))[GREATEST(1, (COALESCE(cardinality(errors), 0) - 8)):] END;

CREATE OR REPLACE FUNCTION rowlock.branch(key text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN "substring"(key, '^(?:.*/)?'::text);

CREATE OR REPLACE FUNCTION rowlock.cancel(id uuid, by text DEFAULT SESSION_USER, why text DEFAULT NULL::text)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
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
    $function$;

CREATE OR REPLACE FUNCTION rowlock.channel(queue text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN ('rowlock:'::text || md5(('rowlock.'::text || queue)));

CREATE OR REPLACE FUNCTION rowlock.clear_spare_events()
 RETURNS integer
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
    with gone as (
        delete from rowlock.events_spare where at < rowlock.now() - interval '30 days' returning id
    )
    select count(*)::integer from gone
    $function$;

CREATE OR REPLACE FUNCTION rowlock.drop_part(partitioned text, first date, days integer)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '200ms'
AS $function$
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
    $function$;

CREATE OR REPLACE FUNCTION rowlock.end_pauses(actor text)
 RETURNS TABLE(kind text, name text)
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
    $function$;

CREATE OR REPLACE FUNCTION rowlock.enqueue(task text, args json DEFAULT '{}'::json, queue text DEFAULT 'default'::text, priority integer DEFAULT NULL::integer, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, delay interval DEFAULT NULL::interval, key text DEFAULT NULL::text, tags text[] DEFAULT NULL::text[], attempts integer DEFAULT NULL::integer, expires interval DEFAULT NULL::interval, period interval DEFAULT NULL::interval, taken text DEFAULT 'return'::text, at_most interval DEFAULT NULL::interval, version integer DEFAULT NULL::integer)
 RETURNS uuid
 LANGUAGE plpgsql
AS $function$
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
    $function$;

CREATE OR REPLACE FUNCTION rowlock.event_expiry()
 RETURNS date
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$
    select case
        when to_regclass('rowlock.' || to_char(day - (day - date '0001-01-01' + 1) % 7, '"events_"YYYYMMDD')) is null
            then 'infinity'
        else day
    end
    from (select (rowlock.now() at time zone 'UTC')::date + 30 as day) as proper
    $function$;

CREATE OR REPLACE FUNCTION rowlock.folded(job uuid)
 RETURNS SETOF json
 LANGUAGE sql
 STABLE
AS $function$
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
    $function$;

CREATE OR REPLACE FUNCTION rowlock.make_part(partitioned text, first date, days integer)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
    $function$;

CREATE OR REPLACE FUNCTION rowlock.make_way(key text, holder uuid, task text, replaces boolean, args json, starts timestamp with time zone, at_most interval, priority smallint, lifetime interval)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
    $function$;

CREATE OR REPLACE FUNCTION rowlock.notifies()
 RETURNS boolean
 LANGUAGE sql
RETURN (pg_notification_queue_usage() < (0.5)::double precision);

CREATE OR REPLACE FUNCTION rowlock.notify(channel text, payload text)
 RETURNS text
 LANGUAGE sql
RETURN CASE WHEN rowlock.notifies() THEN (pg_notify(channel, payload))::text ELSE NULL::text END;

CREATE OR REPLACE FUNCTION rowlock.now()
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN statement_timestamp();

CREATE OR REPLACE FUNCTION rowlock.part_name(partitioned text, first date, days integer)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE STRICT
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
    $function$;

CREATE OR REPLACE FUNCTION rowlock.put(id uuid, queue text, task text, args json, priority smallint, attempts integer, run_at timestamp with time zone, delay interval, lifetime interval, tags text[], key text, period interval, taken text, at_most interval, is_priority_named boolean, version integer, OUT job uuid, OUT of_task text, OUT on_queue text, OUT created boolean)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
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
    $function$;

CREATE OR REPLACE FUNCTION rowlock.resumed(job uuid, folded json, anew boolean)
 RETURNS SETOF rowlock.steps
 LANGUAGE sql
 STABLE
AS $function$
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
    $function$;

CREATE OR REPLACE FUNCTION rowlock.send_signal(id uuid, target text, name text, payload json, key text, OUT answer text, OUT job uuid, OUT state text)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
    $function$;

CREATE OR REPLACE FUNCTION rowlock.sent_before(ids uuid[])
 RETURNS SETOF uuid
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
    select job.id from rowlock.jobs as job where job.id = any(ids)
    union
    select past.id from rowlock.history as past where past.id = any(ids)
    $function$;

CREATE OR REPLACE FUNCTION rowlock.shown_state(state text, waits_for text, wakes_at integer, run_at timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN CASE WHEN ((wakes_at IS NOT NULL) AND ((waits_for = ANY (ARRAY['signal'::text, 'children'::text])) OR ((state = 'ready'::text) AND (run_at > rowlock.now())))) THEN 'parked'::text ELSE state END;

CREATE OR REPLACE FUNCTION rowlock.signal(target text, name text, payload json DEFAULT NULL::json, key text DEFAULT NULL::text)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
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
    $function$;

CREATE OR REPLACE FUNCTION rowlock.take_back(ids uuid[])
 RETURNS void
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
    $function$;

CREATE OR REPLACE FUNCTION rowlock.terminate(target uuid, by_whom text, why text, keep interval, OUT answer text, OUT children uuid[])
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
    $function$;

CREATE OR REPLACE FUNCTION rowlock.token(job uuid, claim integer)
 RETURNS uuid
 LANGUAGE sql
 PARALLEL SAFE
AS $function$
    select encode(int8send(uuid_hash_extended(job, claim)) || int8send((random() * 9007199254740992)::bigint), 'hex')::uuid
    $function$;

CREATE OR REPLACE FUNCTION rowlock.trip(task text, duration interval, why text)
 RETURNS boolean
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
    $function$;

CREATE OR REPLACE FUNCTION rowlock.unfolded(job uuid, folded json)
 RETURNS SETOF rowlock.steps
 LANGUAGE sql
 STABLE
AS $function$
    select
        job, step.key, step.position, step.kind, step.state, one -> 'input', one -> 'value', one -> 'error', step.attempts,
        step.until, step.child, one -> 'form', step.started_at, step.ended_at
    from json_array_elements(folded -> 'steps') as one
    cross join lateral json_to_record(one) as step (
        key text, position integer, kind text, state text, attempts integer, until timestamptz, child uuid,
        started_at timestamptz, ended_at timestamptz
    )
    $function$;

CREATE OR REPLACE FUNCTION rowlock.uuid7()
 RETURNS uuid
 LANGUAGE sql
 PARALLEL SAFE
AS $function$
    select encode(
        set_bit(set_bit(
            overlay(uuid_send(gen_random_uuid())
                placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
                from 1 for 6),
            52, 1), 53, 1), 'hex')::uuid
    $function$;

-- also: sequence looked_at

-- also: sequence parking_number

-- also: view approvals

-- also: view parked

-- also: view workflow_steps

-- also: view workflows
