-- End ready and waiting jobs as cancelled, because somebody asked; their keys are free.
-- Decides by the rows it locks: a job that a worker has claimed meanwhile is left to it.
with mine as materialized (
    select job.*
    from rowlock.jobs as job
    where job.id = any(:ids::uuid[]) and job.state = any('{ready,waiting}'::text[])
    order by job.id
    for update skip locked
),
gone as (
    delete from rowlock.jobs where id = any(array(select id from mine))
),
freed as (
    delete from rowlock.keys
    where key = any(array(select key from mine where key is not null)) and job = any(array(select id from mine))
),
kept as (
    insert into rowlock.history (
        id, queue, task, state, priority, failures, crashes, claims, attempts, run_at, created_at, started_at, ended_at,
        expires_on, worker, args, key, tags, reason, errors, progress
    )
    select
        id, queue, task, 'cancelled', priority, failures, crashes, claims, attempts, run_at, created_at, started_at,
        rowlock.now(),
        (
            (rowlock.now() + coalesce(
                (select asked.keep_cancelled from rowlock.queues as asked where asked.name = mine.queue), :keep::interval
            )) at time zone 'UTC'
        )::date,
        worker, args, key, tags, 'asked', errors, progress
    from mine
),
logged as (
    insert into rowlock.events (kind, job, actor, details)
    select
        'cancelled', id, :actor,
        json_strip_nulls(json_build_object(
            'task', task, 'queue', queue, 'why', :why, 'state', state, 'waits_for', waits_for, 'run_at', run_at
        ))
    from mine
)
select
    count(*)::integer as changed,
    (
        select count(pg_notify('rowlock:' || waiter.listener, ''))
        from rowlock.waiters as waiter
        where waiter.job = any(array(select id from mine))
    ) as told
from mine;
