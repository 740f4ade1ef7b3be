-- Count the waiting jobs of each queue by what they wait for: a loose scan and bounded counts, as of lanes.
with recursive kinds as (
    (
        select job.waits_for, job.task, job.queue
        from rowlock.jobs as job
        where job.state = 'waiting'
        order by job.waits_for, job.task, job.queue
        limit 1
    )
    union all
    select following.waits_for, following.task, following.queue
    from kinds
    cross join lateral (
        select job.waits_for, job.task, job.queue
        from rowlock.jobs as job
        where job.state = 'waiting' and (job.waits_for, job.task, job.queue) > (kinds.waits_for, kinds.task, kinds.queue)
        order by job.waits_for, job.task, job.queue
        limit 1
    ) as following
),
bound as materialized (
    select least(:most::bigint, greatest(:most::bigint / 1000, 2 * :most::bigint / greatest(count(*), 1))) as rows
    from kinds
)
select kinds.queue, kinds.waits_for, sum(waiting.count)::integer as waiting, bool_or(waiting.count >= bound.rows) as more
from kinds
cross join bound
cross join lateral (
    select count(*) as count
    from (
        select
        from rowlock.jobs as job
        where job.state = 'waiting' and job.waits_for = kinds.waits_for and job.task = kinds.task and job.queue = kinds.queue
        limit bound.rows
    ) as those
) as waiting
group by kinds.queue, kinds.waits_for;
