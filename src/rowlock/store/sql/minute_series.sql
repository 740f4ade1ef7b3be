-- Add up what all workers did since :since, in steps of :step: how many, how long attempts took, how long jobs had been due.
-- Of a large fleet, only the newest :most rows; how many were looked at says whether that was all.
with latest as materialized (
    select
        date_bin(:step::interval, minute, '1970-01-01 00:00:00+00') as at,
        coalesce(queue = :queue, true) and coalesce(task = :task, true) as wanted,
        claimed, succeeded, failed, cancelled, retried, seconds, slowest, durations, waited, longest, waits
    from rowlock.minutes
    where minute >= :since::timestamptz
    order by minute desc
    limit :most::integer
),
counted as materialized (
    select at, true as ran, bucket, sum(jobs)::bigint as jobs
    from (select at, generate_subscripts(durations, 1) as bucket, unnest(durations) as jobs from latest where wanted) as took
    group by at, bucket
    union all
    select at, false, bucket, sum(jobs)::bigint
    from (select at, generate_subscripts(waits, 1) as bucket, unnest(waits) as jobs from latest where wanted) as due
    group by at, bucket
),
buckets as materialized (
    select
        at,
        array_agg(bucket) filter (where ran) as durations, array_agg(jobs) filter (where ran) as attempts,
        array_agg(bucket) filter (where not ran) as waits, array_agg(jobs) filter (where not ran) as claims
    from counted
    group by at
),
totals as materialized (
    select
        at, count(*) as looked, sum(claimed) filter (where wanted) as claimed, sum(succeeded) filter (where wanted) as succeeded,
        sum(failed) filter (where wanted) as failed, sum(cancelled) filter (where wanted) as cancelled,
        sum(retried) filter (where wanted) as retried, sum(seconds) filter (where wanted) as seconds,
        max(slowest) filter (where wanted) as slowest, sum(waited) filter (where wanted) as waited,
        max(longest) filter (where wanted) as longest
    from latest
    group by at
)
select
    totals.at, totals.looked, coalesce(totals.claimed, 0), coalesce(totals.succeeded, 0), coalesce(totals.failed, 0),
    coalesce(totals.cancelled, 0), coalesce(totals.retried, 0),
    coalesce(totals.seconds, 0), coalesce(totals.slowest, 0), buckets.durations, buckets.attempts,
    coalesce(totals.waited, 0), coalesce(totals.longest, 0), buckets.waits, buckets.claims
from totals
left join buckets on buckets.at = totals.at
order by totals.at;
