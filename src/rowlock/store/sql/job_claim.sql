-- Claim due jobs, lane by lane: a lane is one queue and one priority, and :lanes come in the order in which to look.
-- Each lane is an exact range scan that starts at its floor, where this process's last claim there ended, so neither delayed
-- jobs of a higher priority nor dead rows under a held snapshot are walked (36k/s fell to 5.8k/s after 200,000 jobs).
-- Materialized, and found again by `= any(array(…))`: joined to jobs, a stale plan took 2.5 s for 100 rows; as an IN
-- subquery it may be run again and lock more than the limit.
-- The commit does not wait for the disk: a claim lost in a crash is a job that is ready again. set_config must stand where
-- it is read; in a CTE that nothing reads it silently does nothing.
-- The first :free rows begin at once, for there are so many free slots, and are marked so: only what had begun is counted as a
-- crash if its worker dies. The others are claimed ahead; whoever claims marks those that run for longer (job_begin).
-- Paused queues are not looked into. Jobs of a paused task are claimed all the same, and set aside by the worker: left in
-- their lane, every claim would walk over them.
with me as materialized (
    select id from rowlock.workers where id = :worker::uuid and lease > rowlock.now()
),
paused as materialized (
    select kind, name from rowlock.pauses where coalesce(until > rowlock.now(), true)
),
picked as materialized (
    select due.id
    from unnest(
        :queues::text[], :priorities::smallint[], :floor_run_ats::timestamptz[], :floor_ids::uuid[]
    ) as lane (queue, priority, run_at, id)
    cross join lateral (
        select job.id
        from rowlock.jobs as job
        where job.state = 'ready'
            and job.queue = lane.queue
            and job.priority = lane.priority
            and job.run_at <= rowlock.now()
            and (job.run_at, job.id) > (lane.run_at, lane.id)
        order by job.run_at, job.id
        limit :limit::integer
        for update skip locked
    ) as due
    where exists (select from me) and lane.queue <> all(array(select name from paused where kind = 'queue'))
    limit :limit::integer
)
update rowlock.jobs
set state = 'running', token = rowlock.token(id, claims), worker = (select id from me), claims = claims + 1, started_at = rowlock.now(),
    begun = case
        when id in (select first.id from (select id from picked limit :free::integer) as first) then true
        when begun is not null then false
    end,
    progress = null, wakes_at = null
where id = any(array(select id from picked))
returning
    {claimed},
    set_config('synchronous_commit', 'off', true);
