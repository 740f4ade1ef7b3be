-- In how many seconds the first job of these lanes is due, if that is soon: none, or fewer, when it is due now.
-- And the number of the latest parking: a worker that has parked long ago parks again, or nobody would find it.
-- And a time, for where nothing is due: all before that is dead by now, but for what has yet to be committed.
-- As cheap as a claim that finds nothing, and it locks nothing: an idle worker asks this instead, and knows when to claim.
select extract(epoch from min(soonest.run_at) - rowlock.now())::float8, (select last_value from rowlock.parking_number),
    (rowlock.now() - interval '10 seconds')::text
from unnest(
    :queues::text[], :priorities::smallint[], :floor_run_ats::timestamptz[], :floor_ids::uuid[]
) as lane (queue, priority, run_at, id)
cross join lateral (
    select job.run_at
    from rowlock.jobs as job
    where job.state = 'ready'
        and job.queue = lane.queue
        and job.priority = lane.priority
        and job.run_at <= rowlock.now() + :within::interval
        and (job.run_at, job.id) > (lane.run_at, lane.id)
    order by job.run_at, job.id
    limit 1
) as soonest
where lane.queue <> all(array(
    select name from rowlock.pauses where kind = 'queue' and coalesce(until > rowlock.now(), true)
));
