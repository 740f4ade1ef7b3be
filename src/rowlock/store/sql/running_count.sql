-- Count the running jobs of each queue; no more than :most in all are looked at.
with running as materialized (
    select job.queue from rowlock.jobs as job where job.state = 'running' limit :most::integer
)
select queue, count(*)::integer as running, (select count(*) from running) >= :most::integer as more
from running
group by queue;
