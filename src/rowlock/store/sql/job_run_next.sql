-- Put ready jobs, delayed ones too, before all others of their queues: into the first lane, below the first job there.
-- A parked workflow would only find that what it waits for has not come: it is left alone.
-- Among themselves they go by id, oldest first. The place lies below claims' floors: workers are told to look there.
with mine as materialized (
    select job.id, job.task, job.queue, job.priority, job.run_at
    from rowlock.jobs as job
    where job.id = any(:ids::uuid[])
        and rowlock.shown_state(job.state, job.waits_for, job.wakes_at, job.run_at) = 'ready'
    order by job.id
    for update skip locked
),
heads as materialized (
    select
        queue,
        least(rowlock.now(), (
            select job.run_at
            from rowlock.jobs as job
            where job.state = 'ready' and job.queue = mine.queue and job.priority = 4
            order by job.run_at, job.id
            limit 1
        )) - interval '1 microsecond' as run_at
    from mine
    group by queue
),
hurried as (
    update rowlock.jobs
    set priority = 4, run_at = (select heads.run_at from heads where heads.queue = jobs.queue)
    where id = any(array(select id from mine))
),
logged as (
    insert into rowlock.events (kind, job, actor, details)
    select
        'run_next', id, :actor,
        json_strip_nulls(json_build_object(
            'task', task, 'queue', queue, 'why', :why, 'priority', priority, 'run_at', run_at
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
