-- Count the due jobs of a queue that come before one of them: those of higher priorities, then those of its own that were
-- due before it; :most at the most.
-- Two looks, each into an exact range of the claim's index: with one condition for both, a job at the head of its lane
-- would cost the whole lane behind it.
select count(*)::integer
from (
    (
        select 1
        from generate_series(:priority::integer + 1, 4) as higher (priority)
        cross join lateral (
            select
            from rowlock.jobs as job
            where job.state = 'ready'
                and job.queue = :queue
                and job.priority = higher.priority
                and job.run_at <= rowlock.now()
            limit :most::integer
        ) as due
        limit :most::integer
    )
    union all
    (
        select 1
        from rowlock.jobs as job
        where job.state = 'ready'
            and job.queue = :queue
            and job.priority = :priority::smallint
            and (job.run_at, job.id) < (:run_at::timestamptz, :id::uuid)
        limit :most::integer
    )
) as before;
