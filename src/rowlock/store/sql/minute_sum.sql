-- Add up what all workers did, by queue and task, over the last full minutes: :span long.
-- A minute counts as full a little after its end, when workers have written what they counted in it.
select
    queue, task, sum(claimed)::bigint as claimed, sum(succeeded + failed + cancelled)::bigint as completed,
    sum(retried)::bigint as retried, sum(failed)::bigint as failed
from rowlock.minutes
where minute < date_trunc('minute', rowlock.now() - :lag::interval)
    and minute >= date_trunc('minute', rowlock.now() - :lag::interval) - :span::interval
group by queue, task;
