-- Bring forward jobs that have a time in the future only because the database's clock was set back, by :by: those that were
-- made, or claimed for the last time, later than now. What was enqueued for at once is due at once again.
-- Up to :limit, those first that are due the soonest, in the queues of one worker; others look after theirs. Not further than
-- :within after what the clock was set back by: what is due later by more was wanted later, and need not be walked over.
-- The times at which they were made and claimed become now, so that whoever sees the same step of the clock finds nothing more to
-- do. Of a workflow that is parked its steps say when it is due: the sleeps and time-outs that it began meanwhile, and its tries,
-- come forward with it. A sleep until a moment keeps that; and who wakes too soon because of one parks again.
with picked as materialized (
    select found.id, found.wakes_at
    from unnest(:queues::text[]) as lane (queue)
    cross join unnest(:priorities::smallint[]) as level (priority)
    cross join lateral (
        select job.id, job.wakes_at
        from rowlock.jobs as job
        where job.state = 'ready'
            and job.queue = lane.queue
            and job.priority = level.priority
            and job.run_at > rowlock.now()
            and job.run_at <= rowlock.now() + :by::interval + :within::interval
            and greatest(job.created_at, job.started_at) > rowlock.now()
        order by job.run_at, job.id
        limit :limit::integer
        for update skip locked
    ) as found
    limit :limit::integer
),
eased as (
    update rowlock.steps
    set until = greatest(until - :by::interval, rowlock.now()), started_at = least(started_at, rowlock.now())
    where job = any(array(select id from picked where wakes_at is not null))
        and state in ('open', 'retrying')
        and until > rowlock.now()
        and (state = 'retrying' or started_at > rowlock.now())
        and (kind <> 'sleep' or input #>> '{}' !~ '^\d{4}-')
)
update rowlock.jobs
set run_at = greatest(run_at - :by::interval, rowlock.now()),
    created_at = least(created_at, rowlock.now()), started_at = least(started_at, rowlock.now()),
    expires_at = case when created_at > rowlock.now() then expires_at - :by::interval else expires_at end
where id = any(array(select id from picked))
returning id;
