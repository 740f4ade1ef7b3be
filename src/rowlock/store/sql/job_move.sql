-- Put ready and waiting jobs on another queue. Their run_at may lie below claims' floors there: workers are told to look.
with mine as materialized (
    select job.id, job.task, job.queue
    from rowlock.jobs as job
    where job.id = any(:ids::uuid[]) and job.state = any('{ready,waiting}'::text[]) and job.queue <> :queue
    order by job.id
    for update skip locked
),
moved as (
    update rowlock.jobs set queue = :queue where id = any(array(select id from mine))
),
logged as (
    insert into rowlock.events (kind, job, actor, details)
    select
        'moved', id, :actor,
        json_strip_nulls(json_build_object('task', task, 'queue', :queue, 'why', :why, 'from', queue))
    from mine
)
select
    count(*)::integer as changed,
    (
        select count(rowlock.notify(rowlock.channel(parked.queue), 'below'))
        from rowlock.parked
        where parked.queue = :queue and exists (select from mine)
    ) as woken
from mine;
