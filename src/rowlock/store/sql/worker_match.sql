-- The workers on the books as one job sees them: whether each listens on its queue and knows its task, and what it holds.
-- Held jobs are counted up to one more than there are slots: that says whether there is room, and costs the slots.
select
    worker.id, worker.host, worker.pid, worker.slots,
    (
        select count(*)
        from (
            select
            from rowlock.jobs as job
            where job.state = 'running' and job.worker = worker.id
            limit worker.slots + 1
        ) as held
    )::integer as held,
    extract(epoch from worker.lease - rowlock.now())::float8 as lease,
    extract(epoch from worker.lasts)::float8 as lasts, worker.blocked, worker.blocked_by,
    :queue = any(worker.queues) as listens, :task = any(worker.tasks) as knows,
    worker.queues, worker.version, worker.stopping, worker.stuck
from rowlock.workers as worker
order by worker.started_at, worker.id;
