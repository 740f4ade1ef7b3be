-- The job that job_expire would end first. For one that fails, so that the job can be left out.
select job.id
from rowlock.jobs as job
where job.expires_at <= rowlock.now() and job.state <> 'running'
    and job.parent is null and (job.version is null or job.claims = 0) and (job.version is null or job.wakes = 0)
    and job.id <> all(:without::uuid[])
order by job.expires_at
limit 1;
