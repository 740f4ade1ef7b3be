-- Look which schedules have something to do: a slot that has come, one held back that can go on, a run at boot.
-- There is always a row: its first columns say what time it is, how many seconds off the next slot is (if within a minute),
-- and whether any schedule holds a slot back; the others are null where nothing is to do.
-- Of runs at boot a worker that starts makes those that its code declares, and operators' own, unless another one has just
-- made them: :booted_before is a moment somewhat before it started.
-- A version of a schedule is the transaction that wrote its row. What is planned from this look is done to that version only,
-- and :left_out are versions of which this worker can make nothing: they must not stand before the others forever.
with due as materialized (
    (
        select schedule.name
        from rowlock.schedules as schedule
        where schedule.next_at <= rowlock.now()
            and schedule.xmin::text || ' ' || schedule.name <> all(:left_out::text[])
        order by schedule.next_at
        limit :limit::integer
    )
    union
    (
        -- Whoever waits for the end of a job has nothing to do before it; but who replaces one first tells it to end.
        select schedule.name
        from rowlock.schedules as schedule
        where schedule.held is not null
            and (schedule.paused_at is null or schedule.paused_until <= rowlock.now())
            and schedule.xmin::text || ' ' || schedule.name <> all(:left_out::text[])
            and (
                not exists (select from rowlock.jobs as job where job.id = any(schedule.jobs))
                or schedule.overlap = 'replace' and exists (
                    select from rowlock.jobs as job where job.id = any(schedule.jobs) and job.cancel_at is null
                )
            )
        order by schedule.held
        limit :limit::integer
    )
    union
    (
        select schedule.name
        from rowlock.schedules as schedule
        where :booted_before::timestamptz is not null
            and schedule.at_boot
            and (not schedule.is_declared or schedule.name = any(:boots::text[]))
            and coalesce(schedule.booted_at < :booted_before::timestamptz, true)
            and schedule.xmin::text || ' ' || schedule.name <> all(:left_out::text[])
    )
)
select
    rowlock.now() as now,
    (
        select extract(epoch from schedule.next_at - rowlock.now())::float8
        from rowlock.schedules as schedule
        where schedule.next_at > rowlock.now() and schedule.next_at < rowlock.now() + interval '1 minute'
        order by schedule.next_at
        limit 1
    ) as next_in,
    exists (select from rowlock.schedules as schedule where schedule.held is not null) as holds,
    found.*
from (select) as always
left join lateral (
    select
        schedule.name, schedule.xmin::text as version, schedule.cron, schedule.tz,
        extract(epoch from schedule.every)::text as every, extract(epoch from schedule.jitter)::text as jitter,
        schedule.overlap, schedule.catch_up, schedule.next_at, schedule.last_at, schedule.held,
        schedule.paused_at, schedule.paused_until,
        :booted_before::timestamptz is not null
            and schedule.at_boot
            and (not schedule.is_declared or schedule.name = any(:boots::text[]))
            and coalesce(schedule.booted_at < :booted_before::timestamptz, true) as boots,
        array(select job.id::text from rowlock.jobs as job where job.id = any(schedule.jobs)) as live
    from rowlock.schedules as schedule
    where schedule.name = any(array(select name from due))
) as found on true;
