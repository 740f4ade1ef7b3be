-- How many suspects of a queue come before one of them, :most at the most; and which of these workers are at a suspect now.
select
    (
        select count(*)::integer
        from (
            select
            from rowlock.jobs as job
            where job.waits_for = 'suspect'
                and job.queue = :queue
                and (job.run_at, job.id) < (:run_at::timestamptz, :id::uuid)
            limit :most::integer
        ) as before
    ),
    array(
        select distinct job.worker::text
        from rowlock.jobs as job
        where job.state = 'running' and job.worker = any(:workers::uuid[]) and job.crashes >= :suspect::integer
    );
