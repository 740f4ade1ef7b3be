-- Add up what all workers did since :since, in steps of :step: how many, how long attempts took, how long jobs had been due.
-- Of a large fleet, only the newest :most rows. What is not of :queue or :task is added up apart: how many rows were looked at
-- says whether these were all.
select
    latest.at, latest.wanted, count(*) as looked, sum(claimed)::bigint as claimed, sum(succeeded)::bigint as succeeded,
    sum(failed)::bigint as failed, sum(cancelled)::bigint as cancelled, sum(retried)::bigint as retried,
    sum(durations)::text as durations, sum(seconds) as seconds, max(slowest) as slowest,
    sum(waits)::text as waits, sum(waited) as waited, max(longest) as longest
from (
    select
        date_bin(:step::interval, minute, '1970-01-01 00:00:00+00') as at,
        coalesce(queue = :queue, true) and coalesce(task = :task, true) as wanted, claimed, succeeded, failed, cancelled,
        retried, durations, seconds, slowest, waits, waited, longest
    from rowlock.minutes
    where minute >= :since::timestamptz
    order by minute desc
    limit :most::integer
) as latest
group by latest.at, latest.wanted
order by latest.at;
