-- Insert jobs, and notify those of their queues on which a worker is parked, of what is due within a second, too: whoever
-- looks once a second learns of it too late.
-- Resending the same ids inserts nothing twice. An instant in the past becomes now: below a claim's floor a job would wait
-- for the next look from the bottom.
-- A key that is held inserts nothing; what that means is for the next statement (job_put_keyed), for in this one a concurrent
-- winner is not visible. Taking a key waits while another transaction is taking the same one, so jobs with keys travel
-- apart from others, sorted by key (two callers deadlocked 141 times unsorted, never sorted); where one of several keys is
-- held, the caller undoes this and goes on with them all, for the others may come behind it.
-- The arrays are read in a CTE of their own: written into unnest, the planner counts them, finds a plan for that count
-- cheaper than a general one, and so plans every enqueue again, which on users' own connections took a third of it.
with sent as materialized (
    select
        :ids::uuid[] as ids, :queues::text[] as queues, :tasks::text[] as tasks, :priorities::smallint[] as priorities,
        :attempts::integer[] as attempts, :run_ats::timestamptz[] as run_ats, :delays::interval[] as delays,
        :lifetimes::interval[] as lifetimes, :args::text[] as args, :tags::text[] as tags, :keys::text[] as keys,
        :versions::integer[] as versions, :parents::uuid[] as parents
),
asked as materialized (
    select asked.*
    from sent
    cross join unnest(
        sent.ids, sent.queues, sent.tasks, sent.priorities, sent.attempts, sent.run_ats, sent.delays, sent.lifetimes,
        sent.args, sent.tags, sent.keys, sent.versions, sent.parents
    ) as asked (id, queue, task, priority, attempts, run_at, delay, lifetime, args, tags, key, version, parent)
),
taken as (
    insert into rowlock.keys (key, task, job)
    select key, task, id from asked where key is not null
    on conflict (key) do nothing
    returning job
),
enqueued as (
    insert into rowlock.jobs
        (id, queue, task, priority, attempts, run_at, created_at, expires_at, args, tags, key, version, parent)
    select
        id, queue, task, priority, attempts,
        greatest(coalesce(run_at, rowlock.now() + delay), rowlock.now()),
        rowlock.now(),
        greatest(coalesce(run_at, rowlock.now() + delay), rowlock.now()) + lifetime,
        args::json, tags::text[], key, version, parent
    from asked
    where key is null or id in (select job from taken)
    on conflict (id) do nothing
    returning id, queue, run_at
)
select
    id,
    -- Once for each job; of equal notifications in a transaction PostgreSQL sends one. Whether to is asked once for all.
    (
        select case when (select rowlock.notifies()) then pg_notify(rowlock.channel(parked.queue), '')::text end
        from rowlock.parked
        where parked.queue = enqueued.queue and enqueued.run_at <= rowlock.now() + interval '1 second'
        limit 1
    ) as woken
from enqueued;
