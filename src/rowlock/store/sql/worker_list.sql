-- The workers on the books, those of whose HOST:PID :named is a part, oldest first; with :watched in the order of those who watch
-- them, whose lease has run out first, then by HOST:PID. How many jobs each holds, for how many seconds more it may hold them,
-- and how its claims went.
select
    worker.id, worker.host, worker.pid, worker.slots,
    (select count(*) from rowlock.jobs as job where job.state = 'running' and job.worker = worker.id)::integer as held,
    extract(epoch from worker.lease - rowlock.now())::float8 as lease,
    extract(epoch from worker.lasts)::float8 as lasts, worker.blocked, worker.blocked_by,
    worker.queues, worker.started_at, worker.version, worker.stopping, worker.stuck, worker.restarts, worker.fault,
    worker.failing, worker.failing_since,
    worker.claims, worker.claimed, worker.claim_seconds, worker.claim_slowest
from rowlock.workers as worker
where :named is null or strpos(lower(worker.host || ':' || worker.pid), lower(:named)) > 0
order by
    case when :watched::boolean then worker.lease > rowlock.now() end,
    case when :watched::boolean then worker.host end,
    case when :watched::boolean then worker.pid end,
    worker.started_at, worker.id
limit :limit::integer;
