-- The jobs that each of these workers holds, those that have begun first, and of these the oldest, no more than :limit of each.
select
    job.worker, job.id, job.task, job.queue, job.started_at, job.progress::text, job.cancel_at is not null as cancelling,
    job.version, job.begun is true as begun
from unnest(:workers::uuid[]) as asked (worker)
cross join lateral (
    select job.worker, job.id, job.task, job.queue, job.started_at, job.progress, job.cancel_at, job.version, job.begun
    from rowlock.jobs as job
    where job.state = 'running' and job.worker = asked.worker
    order by job.begun is true desc, job.started_at, job.id
    limit :limit::integer
) as job;
