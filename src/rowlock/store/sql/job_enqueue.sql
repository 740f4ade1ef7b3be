-- Insert jobs, and notify those of their queues on which a worker is parked.
-- Resending the same ids inserts nothing twice. An instant in the past becomes now: below a claim's floor a job would wait
-- for the next look from the bottom.
-- A key that is held inserts nothing; its holder is found by the next statement (key_find), for in this one a concurrent
-- winner is not visible. Taking a key waits while another transaction is taking the same one, so jobs with keys travel
-- apart from others, sorted by key (two callers deadlocked 141 times unsorted, never sorted).
with asked as materialized (
    select *
    from unnest(
        :ids::uuid[], :queues::text[], :tasks::text[], :priorities::smallint[],
        :attempts::integer[], :run_ats::timestamptz[], :delays::interval[],
        :lifetimes::interval[], :args::text[], :tags::text[], :keys::text[]
    ) as asked (id, queue, task, priority, attempts, run_at, delay, lifetime, args, tags, key)
),
taken as (
    insert into rowlock.keys (key, task, job)
    select key, task, id from asked where key is not null
    on conflict (key) do nothing
    returning job
),
enqueued as (
    insert into rowlock.jobs
        (id, queue, task, priority, attempts, run_at, created_at, expires_at, args, tags, key)
    select
        id, queue, task, priority, attempts,
        greatest(coalesce(run_at, rowlock.now() + delay), rowlock.now()),
        rowlock.now(),
        rowlock.now() + lifetime,
        args::json, tags::text[], key
    from asked
    where key is null or id in (select job from taken)
    on conflict (id) do nothing
    returning id, queue, run_at
)
select
    id,
    -- Once for each parked worker; of equal notifications in a transaction PostgreSQL sends one.
    (
        select count(pg_notify(rowlock.channel(parked.queue), ''))
        from rowlock.parked
        where parked.queue = any(array(select due.queue from enqueued as due where due.run_at <= rowlock.now()))
    ) as woken
from enqueued;
