-- Remove ready and waiting jobs; their keys are free, and only their events remain.
-- Decides by the rows it locks: a job that a worker has claimed meanwhile is left to it. So are workflows to which something
-- has happened, for what they did is to be undone, and children, for their parents are to be told: cancel them first.
with mine as materialized (
    select job.id, job.task, job.queue, job.state, job.key
    from rowlock.jobs as job
    where job.id = any(:ids::uuid[])
        and job.state = any('{ready,waiting}'::text[])
        and job.parent is null
        and (job.version is null or (job.claims = 0 and job.wakes = 0))
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
logged as (
    insert into rowlock.events (kind, job, actor, details)
    select
        'deleted', id, :actor,
        json_strip_nulls(json_build_object('task', task, 'queue', queue, 'why', :why, 'state', state, 'key', key))
    from mine
)
select
    count(*)::integer as changed,
    (
        select count(rowlock.notify('rowlock:' || waiter.listener, ''))
        from rowlock.waiters as waiter
        where waiter.job = any(array(select id from mine))
    ) as told
from mine;
