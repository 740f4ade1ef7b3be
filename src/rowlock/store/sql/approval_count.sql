-- Count the workflows that wait for somebody to fill in a form, by name, among the first :most such waits; name one of each.
with waits as materialized (
    select approval.job from rowlock.approvals as approval limit :most::integer
)
select
    job.task, count(*)::integer as jobs, (array_agg(job.id order by job.id))[1]::text as first,
    (select count(*) from waits) >= :most::integer as more
from rowlock.jobs as job
where job.id in (select waits.job from waits)
group by job.task
order by jobs desc, job.task;
