-- How many jobs ended and failed in each minute since :since, of each queue, and of each task: one of the two is null.
-- Of a large fleet, only the newest :most rows.
select latest.queue, latest.task, latest.minute, sum(latest.ended)::bigint as ended, sum(latest.failed)::bigint as failed
from (
    select minute, queue, task, succeeded + failed + cancelled as ended, failed
    from rowlock.minutes
    where minute >= :since::timestamptz
    order by minute desc
    limit :most::integer
) as latest
group by grouping sets ((latest.queue, latest.minute), (latest.task, latest.minute))
order by latest.minute;
