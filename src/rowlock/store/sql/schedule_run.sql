-- Make a job of a schedule now, beside its slots, because somebody asked. Resent with the same id, it makes one.
-- An earlier statement has locked the schedule: in this one, a job that somebody makes meanwhile would not be seen.
-- Its next slot looks at this job as at the others, whatever its overlap policy says.
with mine as materialized (
    select schedule.* from rowlock.schedules as schedule where schedule.name = :name
),
made as (
    insert into rowlock.jobs (id, queue, task, priority, attempts, run_at, created_at, expires_at, args, tags, version)
    select
        :id::uuid, queue, task, priority, attempts, rowlock.now(), rowlock.now(), rowlock.now() + expires, args,
        tags || array['schedule:' || name], version
    from mine
    on conflict (id) do nothing
    returning id, queue, task
),
noted as (
    insert into rowlock.firings (schedule, slot, job, reason, at)
    select mine.name, rowlock.now(), made.id, 'asked', rowlock.now() from mine cross join made
    on conflict (schedule, slot) do nothing
),
entered as (
    update rowlock.schedules
    set jobs = array(select job.id from rowlock.jobs as job where job.id = any(schedules.jobs)) || :id::uuid
    where name = :name and exists (select from made)
),
logged as (
    insert into rowlock.events (kind, job, actor, details)
    select
        'run_now', made.id, :actor,
        json_strip_nulls(json_build_object('schedule', :name, 'why', :why, 'task', task, 'queue', queue))
    from made
)
select
    task, queue, version,
    (
        select rowlock.notify(rowlock.channel(parked.queue), '')
        from rowlock.parked
        where parked.queue = mine.queue and exists (select from made)
        limit 1
    ) as woken
from mine;
