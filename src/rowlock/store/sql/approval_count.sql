-- Count the workflows that wait for somebody to fill in a form, by name, among the first :most such waits; name one of each.
with waits as materialized (
    select approval.job from rowlock.approvals as approval limit :most::integer
)
select
    job.task, count(*)::integer as jobs, (array_agg(job.id order by job.id))[1]::text as first,
    (select count(*) from waits) >= :most::integer as more
from (select distinct waits.job as id from waits) as waiting
cross join lateral (select one.id, one.task from rowlock.jobs as one where one.id = waiting.id limit 1) as job
group by job.task
order by jobs desc, job.task;
