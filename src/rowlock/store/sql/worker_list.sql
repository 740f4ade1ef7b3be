-- The workers on the books, oldest first: how many jobs each holds, and for how many seconds more it may hold them.
select
    worker.id, worker.host, worker.pid, worker.slots,
    (select count(*) from rowlock.jobs as job where job.state = 'running' and job.worker = worker.id)::integer as held,
    extract(epoch from worker.lease - rowlock.now())::float8 as lease,
    extract(epoch from worker.lasts)::float8 as lasts, worker.blocked, worker.blocked_by,
    worker.queues, worker.started_at, worker.version, worker.stuck, worker.restarts, worker.fault,
    worker.failing, worker.failing_since,
    worker.claims, worker.claimed, worker.claim_seconds, worker.claim_slowest
from rowlock.workers as worker
order by worker.started_at, worker.id;
