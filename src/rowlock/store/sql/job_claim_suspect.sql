-- Claim the one suspect that has been due the longest: a job that workers died of, which was set aside. It begins at once, and is
-- marked so. There are few of them, so the index is walked in the order of time, over those of other queues.
with me as materialized (
    select id from rowlock.workers where id = :worker::uuid and lease > rowlock.now()
),
paused as materialized (
    select kind, name from rowlock.pauses where coalesce(until > rowlock.now(), true)
),
picked as materialized (
    select job.id
    from rowlock.jobs as job
    where job.waits_for = 'suspect'
        and job.run_at <= rowlock.now()
        and (:only::uuid is null or job.id = :only::uuid)
        and job.queue = any(:queues::text[])
        and job.queue <> all(array(select name from paused where kind = 'queue'))
        and job.task <> all(array(select name from paused where kind = 'task'))
        and exists (select from me)
    order by job.run_at, job.id
    limit 1
    for update skip locked
)
update rowlock.jobs
set state = 'running', waits_for = null, reason = null, token = rowlock.token(id, claims), worker = (select id from me),
    claims = claims + 1, started_at = rowlock.now(), begun = true, progress = null, wakes_at = null
where id = any(array(select id from picked))
returning
    {claimed},
    set_config('synchronous_commit', 'off', true);
