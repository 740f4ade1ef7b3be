-- A job that waits for the end of a task's pause. For one that cannot be released, so that it can be left out.
select job.id
from rowlock.jobs as job
where job.state = 'waiting' and job.waits_for = 'pause' and job.task = :task and job.id <> all(:without::uuid[])
limit 1;
