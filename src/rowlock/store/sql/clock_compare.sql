-- By how many seconds the latest of the times that stand on jobs is ahead of the database's clock, where that was set back; else
-- null. For a worker that has just started, and has not seen the clock before.
-- It looks at jobs that are not due yet, in the queues of one worker: of each lane the first :each, and no more than :limit in all, so
-- that it costs the same however many there are. One that was made or claimed later than now is proof. All that have come from before
-- the clock was set back are not needed for that: what it finds is by how much to bring forward, and job_hasten finds the jobs.
select extract(epoch from max(seen.at) - rowlock.now())::float8
from (
    select future.at
    from unnest(:queues::text[]) as lane (queue)
    cross join unnest(:priorities::smallint[]) as level (priority)
    cross join lateral (
        select greatest(
            job.created_at, job.started_at, (job.errors[cardinality(job.errors)] ->> 'ended_at')::timestamptz
        ) as at
        from rowlock.jobs as job
        where job.state = 'ready'
            and job.queue = lane.queue
            and job.priority = level.priority
            and job.run_at > rowlock.now()
        order by job.run_at, job.id
        limit :each::integer
    ) as future
    limit :limit::integer
) as seen
where seen.at > rowlock.now();
