-- Claim jobs that wait for code which this worker has: blocked as unknown, or blocked by a worker that is gone or that started
-- before this one did. In a rolling deploy the new workers have started later than the old ones, which may still run and refuse.
-- Whoever takes a job up and refuses it, too, is now the one who did: it goes from older workers to newer ones, once to each at
-- most, and rests with the newest.
-- What PostgreSQL itself has refused is nobody's to take up: it waits for an operator.
-- :tasks are as workers name them, NAME and for workflows NAME@VERSION; the names alone are what the index knows.
with me as materialized (
    select me.started_at from rowlock.workers as me where me.id = :worker::uuid and me.lease > rowlock.now()
),
paused as materialized (
    select kind, name from rowlock.pauses where coalesce(until > rowlock.now(), true)
),
picked as materialized (
    select job.id
    from rowlock.jobs as job
    where job.state = 'waiting'
        and job.waits_for = 'code'
        and coalesce(job.reason, '') not like 'PostgreSQL refuses to %'
        and job.task = any(array(select split_part(known.name, '@', 1) from unnest(:tasks::text[]) as known (name)))
        and job.task || coalesce('@' || job.version, '') = any(:tasks::text[])
        and job.task <> all(array(select name from paused where kind = 'task'))
        and job.queue = any(:queues::text[])
        and job.queue <> all(array(select name from paused where kind = 'queue'))
        and (job.reason like 'unknown task%' or job.reason like 'unknown version%' or (
            exists (select from me) and job.worker <> all(array(
                select peer.id from rowlock.workers as peer where peer.started_at >= (select me.started_at from me)
            ))
        ))
    limit :limit::integer
    for update skip locked
)
update rowlock.jobs
set state = 'running', waits_for = null, reason = null,
    token = rowlock.token(), worker = :worker::uuid, claims = claims + 1, started_at = rowlock.now(),
    begun = case when begun is not null then false end, progress = null, wakes_at = null
where id = any(array(select id from picked))
returning
    id, token, task, args::text, queue, priority, run_at, failures, crashes, claims, attempts,
    expires_at <= rowlock.now() as expired, false as paused, key, tags,
    version, parent, nullif(wakes, 0) as wakes, cancel_at is not null as cancelling,
    greatest(date_part('epoch', rowlock.now() - run_at), 0) as waited, begun,
    set_config('synchronous_commit', 'off', true);
