-- Lock a live job, waiting for whoever has it; returns its state and whether somebody has asked to cancel it.
select job.state, job.cancel_at is not null as cancelling
from rowlock.jobs as job
where job.id = :id::uuid
for update;
