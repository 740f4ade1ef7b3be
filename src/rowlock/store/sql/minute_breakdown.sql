-- Add up what all workers did within the last :span, by queue and task: how many, how long attempts took, how long jobs had
-- been due. Of a large fleet, only the newest :most rows.
select
    latest.queue, latest.task, sum(claimed)::bigint as claimed, sum(succeeded)::bigint as succeeded,
    sum(failed)::bigint as failed, sum(cancelled)::bigint as cancelled, sum(retried)::bigint as retried,
    sum(durations)::text as durations, sum(seconds) as seconds, max(slowest) as slowest,
    sum(waits)::text as waits, sum(waited) as waited, max(longest) as longest
from (
    select
        queue, task, claimed, succeeded, failed, cancelled, retried, durations, seconds, slowest, waits, waited, longest
    from rowlock.minutes
    where minute > rowlock.now() - :span::interval
    order by minute desc
    limit :most::integer
) as latest
group by latest.queue, latest.task;
