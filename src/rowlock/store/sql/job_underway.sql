-- The jobs that each of these workers holds, those claimed first first, no more than :limit of each.
select
    job.worker, job.id, job.task, job.queue, job.started_at, job.progress::text, job.cancel_at is not null as cancelling,
    job.version
from unnest(:workers::uuid[]) as asked (worker)
cross join lateral (
    select job.worker, job.id, job.task, job.queue, job.started_at, job.progress, job.cancel_at, job.version
    from rowlock.jobs as job
    where job.state = 'running' and job.worker = asked.worker
    order by job.started_at, job.id
    limit :limit::integer
) as job;
