-- Claim jobs that wait for code which this worker has: blocked as unknown, or blocked by a worker that is gone or that started
-- before this one did. In a rolling deploy the new workers have started later than the old ones, which may still run and refuse.
-- Whoever takes a job up and refuses it, too, is now the one who did: it goes from older workers to newer ones, once to each at
-- most, and rests with the newest.
-- What PostgreSQL itself has refused is nobody's to take up: it waits for an operator.
-- :tasks are as workers name them, NAME and for workflows NAME@VERSION; the names alone are what the index knows.
-- A million jobs may wait: the look goes from kind to kind in the index jobs_refused, and reads jobs of those kinds alone that
-- this worker may take up. A kind is a task, queue, version and refusing worker, and whether that one did not know the task.
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
            and (:only::uuid is null or one.id = :only::uuid)
        limit :limit::integer
        for update skip locked
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
update rowlock.jobs
set state = 'running', waits_for = null, reason = null, run_at = least(run_at, rowlock.now()),
    token = rowlock.token(id, claims), worker = :worker::uuid, claims = claims + 1, started_at = rowlock.now(),
    begun = case when begun is not null then false end, progress = null, wakes_at = null
where id = any(array(select id from picked))
returning
    {claimed},
    set_config('synchronous_commit', 'off', true);
