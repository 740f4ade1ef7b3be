-- Add up how long attempts took within the last hour, by task: in all, the slowest, and how many in each bucket.
-- Of a large fleet, only the newest :most rows.
with latest as materialized (
    select task, seconds, slowest, durations
    from rowlock.minutes
    where minute > rowlock.now() - interval '1 hour'
    order by minute desc
    limit :most::integer
),
buckets as materialized (
    select latest.task, bucket, sum(latest.durations[bucket])::bigint as attempts
    from latest
    cross join lateral generate_subscripts(latest.durations, 1) as bucket
    group by latest.task, bucket
),
totals as materialized (
    select task, sum(seconds) as seconds, max(slowest) as slowest from latest group by task
)
select
    totals.task, totals.seconds, totals.slowest,
    array(select buckets.bucket from buckets where buckets.task = totals.task order by buckets.bucket) as numbers,
    array(select buckets.attempts from buckets where buckets.task = totals.task order by buckets.bucket) as attempts
from totals;
