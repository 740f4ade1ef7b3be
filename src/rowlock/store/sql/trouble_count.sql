-- Count the failed jobs in history by task, among the :most newest of those that did not succeed.
with trouble as materialized (
    select job.task, job.state from rowlock.history as job where job.state <> 'succeeded' order by job.id desc limit :most::integer
)
select task, count(*) filter (where state = 'failed')::integer as failed, (select count(*) from trouble) >= :most::integer as more
from trouble
group by task;
