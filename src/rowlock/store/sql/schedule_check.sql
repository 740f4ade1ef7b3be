-- Which schedules are unwell: overdue, because nobody fires them; declared by code that no live worker has; paused for over
-- a day, with nothing said of the end; those of which slots of the last hour were missed although a worker lived that had been
-- there before; and those whose last :slots slots were all passed over. Each up to :most names, and how many there are in all; of
-- the last up to :most_idle, and why each passed over its latest slot.
-- Silent are those that have fired a slot which is still to come: the clock was ahead, and until it has come up again they fire
-- nothing.
with living as materialized (
    select worker.schedules, worker.started_at from rowlock.workers as worker where worker.lease > rowlock.now()
),
seen as materialized (
    select
        schedule.name,
        case when schedule.paused_at is null then extract(epoch from rowlock.now() - schedule.next_at)::float8 end as late,
        schedule.is_declared and exists (select from living)
            and not exists (select from living where schedule.name = any(living.schedules)) as orphan,
        coalesce(schedule.paused_at < rowlock.now() - interval '1 day' and schedule.paused_until is null, false) as forgotten,
        schedule.paused_at is not null as paused,
        case
            when schedule.paused_at is null and schedule.next_at > schedule.last_at
                and schedule.last_at > rowlock.now() + interval '1 minute'
                then extract(epoch from schedule.next_at - rowlock.now())::float8
        end as silent
    from rowlock.schedules as schedule
),
idle as materialized (
    select seen.name, latest.reasons[1] as reason
    from seen
    cross join lateral (
        select array_agg(firing.reason order by firing.slot desc) as reasons
        from (
            select recent.slot, case when recent.job is null then nullif(recent.reason, 'paused') end as reason
            from rowlock.firings as recent
            where recent.schedule = seen.name
            order by recent.slot desc
            limit :slots::integer
        ) as firing
        having count(*) = :slots::integer and count(*) = count(firing.reason)
    ) as latest
    where not seen.paused
    order by seen.name
    limit :most_idle::integer
)
select
    (select count(*) from seen)::integer,
    (select max(late) from seen),
    array(select name from seen where late > :late::float8 order by late desc limit :most::integer),
    array(select name from seen where orphan order by name limit :most::integer),
    array(select name from seen where forgotten order by name limit :most::integer),
    array(
        select name
        from seen
        where exists (
            select from rowlock.firings as firing
            where firing.schedule = seen.name and firing.reason = 'missed' and firing.job is null
                and firing.slot > rowlock.now() - interval '1 hour'
                and firing.slot > (select min(started_at) from living)
        )
        order by name
        limit :most::integer
    ),
    array(select name from seen where silent is not null order by silent desc, name limit :most::integer),
    (select max(silent) from seen),
    array(select name from idle order by name),
    array(select reason from idle order by name);
