-- Remove pauses whose time is over; returns the tasks whose jobs wait for a pause that has ended.
-- These are the tasks of such pauses, and those of jobs that were set aside while somebody resumed their task: their worker
-- had claimed them before, and put them aside after, what was waiting had been released.
with recursive gone as (
    select kind, name from rowlock.end_pauses(:actor)
),
-- A look from task to task in the index: it costs the tasks that wait, not their jobs.
aside (task) as (
    (
        select job.task
        from rowlock.jobs as job
        where job.state = 'waiting' and job.waits_for = 'pause'
        order by job.task
        limit 1
    )
    union all
    select (
        select job.task
        from rowlock.jobs as job
        where job.state = 'waiting' and job.waits_for = 'pause' and job.task > aside.task
        order by job.task
        limit 1
    )
    from aside
    where aside.task is not null
),
woken as (
    select count(rowlock.notify(rowlock.channel(parked.queue), 'below')) as count
    from rowlock.parked
    where parked.queue = any(array(select name from gone where kind = 'queue'))
)
select aside.task, (select count from woken) as woken
from aside
where aside.task is not null
    and not exists (
        select from rowlock.pauses as pause
        where pause.kind = 'task' and pause.name = aside.task and coalesce(pause.until > rowlock.now(), true)
    )
union all
select null, (select count from woken);
