-- Lanes that hold a due job, in the order of their first jobs: by priority, then by what has been due longest.
-- Queues are found by hopping through the claim's index, so it costs the queues there are and not their jobs.
with recursive named as (
    (select queue from rowlock.jobs where state = 'ready' order by queue limit 1)
    union all
    select (
        select other.queue
        from rowlock.jobs as other
        where other.state = 'ready' and other.queue > named.queue
        order by other.queue
        limit 1
    )
    from named
    where named.queue is not null
)
select named.queue, lane.priority
from named
cross join generate_series(-4, 4) as lane (priority)
cross join lateral (
    select job.run_at, job.id
    from rowlock.jobs as job
    where job.state = 'ready'
        and job.queue = named.queue
        and job.priority = lane.priority
        and job.run_at <= rowlock.now()
    order by job.run_at, job.id
    limit 1
) as head
order by lane.priority desc, head.run_at, head.id;
