-- Fire schedules: for each version that was looked at and is still the one there, write down its slots and make their jobs.
-- Exactly one job per slot rests on two things here, and on no lock but those of the rows: a schedule that was fired, edited,
-- paused or removed since the look is another version, and is left to the next look; and a slot that is written down already
-- makes no job, whatever became of the clock or the rule meanwhile. The job is committed with its slot, or neither is.
-- A row that somebody has locked is passed over: this runs on the connection that keeps the lease, which waits for nobody.
-- Each schedule's slots are sent as a list within the lists, so that 1,000 schedules are not compared with 1,000 slots; where
-- a row goes is found by its name in the arrays as sent, for a join to the table can be planned the wrong way round.
with sent as materialized (
    select
        :names::text[] as names, :versions::text[] as versions, :next_ats::timestamptz[] as next_ats,
        :last_ats::timestamptz[] as last_ats, :helds::timestamptz[] as helds, :boots::boolean[] as boots,
        :slots::text[] as slots, :ids::text[] as ids, :reasons::text[] as reasons, :jitters::text[] as jitters
),
mine as materialized (
    select schedule.*, planned.slots, planned.ids, planned.reasons, planned.jitters
    from sent
    cross join unnest(sent.names, sent.versions, sent.slots, sent.ids, sent.reasons, sent.jitters)
        as planned (name, version, slots, ids, reasons, jitters)
    cross join lateral (
        select
            schedule.name, schedule.queue, schedule.task, schedule.priority, schedule.attempts, schedule.expires,
            schedule.args, schedule.tags, schedule.version
        from rowlock.schedules as schedule
        where schedule.name = planned.name and schedule.xmin::text = planned.version
        for update skip locked
    ) as schedule
),
noted as (
    insert into rowlock.firings (schedule, slot, job, reason, at)
    select mine.name, slot.slot, slot.id, slot.reason, rowlock.now()
    from mine
    cross join lateral unnest(mine.slots::timestamptz[], mine.ids::uuid[], mine.reasons::text[]) as slot (slot, id, reason)
    on conflict (schedule, slot) do nothing
    returning job
),
fired as (
    insert into rowlock.jobs (id, queue, task, priority, attempts, run_at, created_at, expires_at, args, tags, version)
    select
        slot.id, mine.queue, mine.task, mine.priority, mine.attempts,
        rowlock.now() + slot.jitter, rowlock.now(), rowlock.now() + slot.jitter + mine.expires, mine.args,
        mine.tags || array['schedule:' || mine.name, 'slot:' || slot.slot], mine.version
    from mine
    cross join lateral unnest(mine.slots::text[], mine.ids::uuid[], mine.jitters::interval[]) as slot (slot, id, jitter)
    -- `is true` keeps this a look-up in a hash table; as a plain condition it becomes a join, each with each.
    where (slot.id in (select job from noted)) is true
    returning queue, run_at
),
moved as (
    update rowlock.schedules as schedule
    set (next_at, last_at, held, booted_at, jobs) = (
        select
            sent.next_ats[place], greatest(schedule.last_at, sent.last_ats[place]), sent.helds[place],
            case when sent.boots[place] then rowlock.now() else schedule.booted_at end,
            array(
                select id
                from (
                    select job.id from rowlock.jobs as job where job.id = any(schedule.jobs)
                    union all
                    select made.id from unnest(sent.ids[place]::uuid[]) as made (id) where made.id is not null
                ) as live
                order by id desc
                limit 1000
            )
        from sent
        cross join array_position(sent.names, schedule.name) as place
    )
    where schedule.name = any(array(select name from mine))
)
select
    name,
    (
        select count(rowlock.notify(rowlock.channel(queue), ''))
        from (select distinct queue from fired where run_at <= rowlock.now()) as due
        where exists (select from rowlock.parked where parked.queue = due.queue)
    ) as woken
from mine;
