-- Add up what all workers did within the last :span, by queue and task: how many, how long attempts took, how long jobs had
-- been due. Of a large fleet, only the newest :most rows.
with latest as materialized (
    select
        queue, task, claimed, succeeded, failed, cancelled, retried, seconds, slowest, durations, waited, longest, waits
    from rowlock.minutes
    where minute > rowlock.now() - :span::interval
    order by minute desc
    limit :most::integer
),
counted as materialized (
    select queue, task, true as ran, bucket, sum(jobs)::bigint as jobs
    from (select queue, task, generate_subscripts(durations, 1) as bucket, unnest(durations) as jobs from latest) as took
    group by queue, task, bucket
    union all
    select queue, task, false, bucket, sum(jobs)::bigint
    from (select queue, task, generate_subscripts(waits, 1) as bucket, unnest(waits) as jobs from latest) as due
    group by queue, task, bucket
),
buckets as materialized (
    select
        queue, task,
        array_agg(bucket) filter (where ran) as durations, array_agg(jobs) filter (where ran) as attempts,
        array_agg(bucket) filter (where not ran) as waits, array_agg(jobs) filter (where not ran) as claims
    from counted
    group by queue, task
),
totals as materialized (
    select
        queue, task, sum(claimed) as claimed, sum(succeeded) as succeeded, sum(failed) as failed,
        sum(cancelled) as cancelled, sum(retried) as retried, sum(seconds) as seconds, max(slowest) as slowest,
        sum(waited) as waited, max(longest) as longest
    from latest
    group by queue, task
)
select
    totals.queue, totals.task, totals.claimed, totals.succeeded, totals.failed, totals.cancelled, totals.retried,
    totals.seconds, totals.slowest, buckets.durations, buckets.attempts,
    totals.waited, totals.longest, buckets.waits, buckets.claims
from totals
left join buckets on buckets.queue = totals.queue and buckets.task = totals.task;
