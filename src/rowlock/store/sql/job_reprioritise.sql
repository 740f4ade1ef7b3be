-- Give ready and waiting jobs another priority. Their run_at may lie below claims' floors in that lane: workers are told.
with mine as materialized (
    select job.id, job.task, job.queue, job.priority
    from rowlock.jobs as job
    where job.id = any(:ids::uuid[])
        and job.state = any('{ready,waiting}'::text[])
        and job.priority <> :priority::smallint
    order by job.id
    for update skip locked
),
changed as (
    update rowlock.jobs set priority = :priority::smallint where id = any(array(select id from mine))
),
logged as (
    insert into rowlock.events (kind, job, actor, details)
    select
        'reprioritised', id, :actor,
        json_strip_nulls(json_build_object(
            'task', task, 'queue', queue, 'why', :why, 'priority', :priority::smallint, 'from', priority
        ))
    from mine
)
select
    count(*)::integer as changed,
    (
        select count(rowlock.notify(rowlock.channel(parked.queue), 'below'))
        from rowlock.parked
        where parked.queue = any(array(select queue from mine))
    ) as woken
from mine;
