-- Where each of these jobs is: a row from jobs while it lives, a row from history once it has ended.
-- One statement and so one snapshot. A settle moves a row from one table to the other in one commit: a job without a row
-- here is lost, a job with two has ended twice.
select
    id, task, state, reason, failures, crashes, attempts, worker,
    greatest(extract(epoch from run_at - rowlock.now()), 0)::float8 as due_in
from rowlock.jobs
where id = any(:ids::uuid[])
union all
select id, task, state, reason, failures, crashes, attempts, worker, 0
from rowlock.history
where id = any(:ids::uuid[]);
