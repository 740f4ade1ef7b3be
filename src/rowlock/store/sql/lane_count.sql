-- Count the ready jobs of each queue, those that are due and those that are not apart, and say how long the oldest is due.
-- Lanes are found by a loose scan of the claim's index, one descent for each, and every count ends at a bound: :most for a
-- lane, and less when there are many, so that all of them together cost no more than two (200,000 rows: 0.2 s, or 0.9 s
-- when vacuum has not been there lately).
with recursive lanes as (
    (
        select job.queue, job.priority
        from rowlock.jobs as job
        where job.state = 'ready'
        order by job.queue, job.priority
        limit 1
    )
    union all
    select following.queue, following.priority
    from lanes
    cross join lateral (
        select job.queue, job.priority
        from rowlock.jobs as job
        where job.state = 'ready' and (job.queue, job.priority) > (lanes.queue, lanes.priority)
        order by job.queue, job.priority
        limit 1
    ) as following
),
bound as materialized (
    select least(:most::bigint, greatest(:most::bigint / 1000, 2 * :most::bigint / greatest(count(*), 1))) as rows
    from lanes
)
select
    lanes.queue,
    sum(runnable.count)::integer as runnable, bool_or(runnable.count >= bound.rows) as more_runnable,
    sum(delayed.count)::integer as delayed, bool_or(delayed.count >= bound.rows) as more_delayed,
    extract(epoch from rowlock.now() - min(oldest.run_at))::float8 as age
from lanes
cross join bound
cross join lateral (
    select count(*) as count
    from (
        select
        from rowlock.jobs as job
        where job.state = 'ready' and job.queue = lanes.queue and job.priority = lanes.priority
            and job.run_at <= rowlock.now()
        limit bound.rows
    ) as due
) as runnable
cross join lateral (
    select count(*) as count
    from (
        select
        from rowlock.jobs as job
        where job.state = 'ready' and job.queue = lanes.queue and job.priority = lanes.priority
            and job.run_at > rowlock.now()
        limit bound.rows
    ) as later
) as delayed
left join lateral (
    select job.run_at
    from rowlock.jobs as job
    where job.state = 'ready' and job.queue = lanes.queue and job.priority = lanes.priority
        and job.run_at <= rowlock.now()
    order by job.run_at
    limit 1
) as oldest on true
group by lanes.queue;
