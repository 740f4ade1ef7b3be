-- The workflow that workflow_unblock would release first. For one that fails, so that the workflow can be left out.
select job.id
from rowlock.jobs as job
where job.waits_for = 'code'
    and job.version is not null
    and job.run_at > job.started_at
    and job.run_at <= rowlock.now()
    and job.id <> all(:without::uuid[])
order by job.run_at
limit 1;
