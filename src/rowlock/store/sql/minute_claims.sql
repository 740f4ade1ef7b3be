-- Add up what each of these workers claimed over the last full minutes, :span long: before other workers' are added to it.
select asked.worker, sum(part.claimed)::bigint as claimed
from unnest(:workers::uuid[]) as asked (worker)
cross join generate_series(
    date_trunc('minute', rowlock.now() - :lag::interval) - :span::interval,
    date_trunc('minute', rowlock.now() - :lag::interval) - interval '1 minute',
    interval '1 minute'
) as full_minute (minute)
cross join lateral (
    select minutes.claimed
    from rowlock.minutes
    where minutes.minute = full_minute.minute and minutes.worker = asked.worker
) as part
group by asked.worker;
