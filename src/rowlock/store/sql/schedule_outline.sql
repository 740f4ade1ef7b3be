-- The schedules as schedule_list returns them, without arguments: for lists, and for a role that may not read these.
-- A statement of its own: PostgreSQL asks for the right to every column that is named, needed or not.
with living as materialized (
    select worker.host || ':' || worker.pid as worker, worker.schedules
    from rowlock.workers as worker
    where worker.lease > rowlock.now()
),
said as materialized (
    select distinct unnest(living.schedules) as name from living
)
select
    schedule.name, schedule.cron, schedule.tz, extract(epoch from schedule.every)::float8 as every,
    schedule.task, null::text as args, schedule.queue, schedule.priority, schedule.attempts, schedule.version,
    extract(epoch from schedule.expires)::float8 as expires, schedule.tags,
    extract(epoch from schedule.jitter)::float8 as jitter,
    schedule.overlap, schedule.catch_up, schedule.at_boot,
    null::text as declared, null::text as edits, schedule.is_declared, schedule.is_edited,
    -- `is not true` keeps this a look-up in a hash table: 1,000 schedules are not compared with those of each worker.
    schedule.is_declared and exists (select from living)
        and (schedule.name in (select said.name from said)) is not true as is_orphan,
    paused.at, paused.until, paused.actor, paused.why,
    schedule.next_at, schedule.last_at, schedule.held, schedule.booted_at,
    array(select job.id::text from rowlock.jobs as job where job.id = any(schedule.jobs) order by job.id) as jobs,
    schedule.created_at,
    array(
        select living.worker
        from living
        where :name is not null and schedule.name = any(living.schedules)
        order by 1
    ) as workers,
    rowlock.now() as now
from rowlock.schedules as schedule
-- A pause whose time is over is none, also before a worker has removed it.
left join lateral (
    select schedule.paused_at as at, schedule.paused_until as until, schedule.paused_by as actor, schedule.paused_why as why
    where coalesce(schedule.paused_until > rowlock.now(), true)
) as paused on true
where :name is null or schedule.name = :name
order by schedule.name;
