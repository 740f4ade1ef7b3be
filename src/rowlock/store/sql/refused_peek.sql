-- The jobs that job_take_up would claim, without a lock or a change. For one that fails, so that it can be made for one job at a
-- time. Written as there, for the same reasons.
with recursive me as materialized (
    select me.started_at from rowlock.workers as me where me.id = :worker::uuid and me.lease > rowlock.now()
),
paused as materialized (
    select kind, name from rowlock.pauses where coalesce(until > rowlock.now(), true)
),
sort (task, queue, version, is_unknown, refuser) as (
    select distinct split_part(known.name, '@', 1), '', 0, false, '00000000-0000-0000-0000-000000000000'::uuid
    from unnest(:tasks::text[]) as known (name)
    union all
    select sort.task, next.*
    from sort
    cross join lateral (
        select
            job.queue, coalesce(job.version, 0),
            coalesce(job.reason like 'unknown task%' or job.reason like 'unknown version%', false),
            coalesce(job.worker, '00000000-0000-0000-0000-000000000000')
        from rowlock.jobs as job
        where job.waits_for = 'code'
            and coalesce(job.reason, '') not like 'PostgreSQL refuses to %'
            and job.task = sort.task
            and (
                job.queue, coalesce(job.version, 0),
                coalesce(job.reason like 'unknown task%' or job.reason like 'unknown version%', false),
                coalesce(job.worker, '00000000-0000-0000-0000-000000000000')
            ) > (sort.queue, sort.version, sort.is_unknown, sort.refuser)
        order by 1, 2, 3, 4
        limit 1
    ) as next
),
picked as materialized (
    select job.id
    from sort
    cross join lateral (
        select one.id
        from rowlock.jobs as one
        where one.waits_for = 'code'
            and coalesce(one.reason, '') not like 'PostgreSQL refuses to %'
            and one.task = sort.task
            and one.queue = sort.queue
            and coalesce(one.version, 0) = sort.version
            and coalesce(one.reason like 'unknown task%' or one.reason like 'unknown version%', false) = sort.is_unknown
            and coalesce(one.worker, '00000000-0000-0000-0000-000000000000') = sort.refuser
        limit :limit::integer
    ) as job
    where sort.queue = any(:queues::text[])
        and sort.task || coalesce('@' || nullif(sort.version, 0), '') = any(:tasks::text[])
        and sort.task <> all(array(select name from paused where kind = 'task'))
        and sort.queue <> all(array(select name from paused where kind = 'queue'))
        and (sort.is_unknown or (
            exists (select from me) and sort.refuser <> all(array(
                select peer.id from rowlock.workers as peer where peer.started_at >= (select me.started_at from me)
            ))
        ))
    limit :limit::integer
)
select id from picked;
