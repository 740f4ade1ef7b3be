-- The suspects that are due, in the order in which they are claimed. For a claim that fails, so that it can be made for one at a
-- time: what is large is not read.
select job.id
from rowlock.jobs as job
where job.waits_for = 'suspect'
    and job.run_at <= rowlock.now()
    and job.queue = any(:queues::text[])
order by job.run_at, job.id
limit :limit::integer;
