-- Count the parked workflows of each queue, and how many of them are stored as ready: lane_count takes those for delayed jobs.
-- A loose scan and bounded counts, as of lanes.
with recursive named as (
    (select queue from rowlock.jobs where wakes_at is not null order by queue limit 1)
    union all
    select (
        select other.queue
        from rowlock.jobs as other
        where other.wakes_at is not null and other.queue > named.queue
        order by other.queue
        limit 1
    )
    from named
    where named.queue is not null
),
bound as materialized (
    select least(:most::bigint, greatest(:most::bigint / 1000, 2 * :most::bigint / greatest(count(*), 1))) as rows
    from named
)
select named.queue, parked.jobs, parked.looked >= bound.rows as more, parked.timed
from named
cross join bound
cross join lateral (
    select
        count(*)::integer as looked,
        (count(*) filter (where those.state = 'parked'))::integer as jobs,
        (count(*) filter (where those.state = 'parked' and those.waits_for is null))::integer as timed
    from (
        select rowlock.shown_state(job.state, job.waits_for, job.wakes_at, job.run_at) as state, job.waits_for
        from rowlock.jobs as job
        where job.wakes_at is not null and job.queue = named.queue
        limit bound.rows
    ) as those
) as parked
where named.queue is not null;
