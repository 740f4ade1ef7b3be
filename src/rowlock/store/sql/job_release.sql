-- Make ready up to :limit jobs that wait for the end of a task's pause, unless it is paused; those in :without stay.
-- They keep their run_at and with it their place, which may lie below claims' floors: workers are told to look there.
with mine as materialized (
    select job.id, job.queue
    from rowlock.jobs as job
    where job.state = 'waiting'
        and job.waits_for = 'pause'
        and job.task = :task
        and job.id <> all(:without::uuid[])
        and not exists (
            select from rowlock.pauses as pause
            where pause.kind = 'task' and pause.name = :task and coalesce(pause.until > rowlock.now(), true)
        )
    limit :limit::integer
    for update skip locked
),
released as (
    update rowlock.jobs set state = 'ready', waits_for = null, reason = null where id = any(array(select id from mine))
)
select
    count(*)::integer as released,
    (
        select count(rowlock.notify(rowlock.channel(parked.queue), 'below'))
        from rowlock.parked
        where parked.queue = any(array(select queue from mine))
    ) as woken
from mine;
