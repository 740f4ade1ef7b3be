-- Look into every lane of the live workers from the bottom, and tell those that listen where a job waits that has been due for
-- a while: its queue, priority, time and id. It may lie below the floors of them all; whose floor is lower knows of it.
-- One worker does it for the fleet while dead rows make such a look dear.
with lane as materialized (
    select served.queue, priority
    from (select distinct unnest(queues) as queue from rowlock.workers where lease > rowlock.now()) as served
    cross join generate_series(4, -4, -1) as priority
    where served.queue <> all(array(
        select name from rowlock.pauses where kind = 'queue' and coalesce(until > rowlock.now(), true)
    ))
)
select count(rowlock.notify(
    rowlock.channel(lane.queue),
    'at ' || json_build_array(lane.queue, lane.priority, first.run_at::text, first.id)
))
from lane
cross join lateral (
    select job.run_at, job.id
    from rowlock.jobs as job
    where job.state = 'ready'
        and job.queue = lane.queue
        and job.priority = lane.priority
        and job.run_at <= rowlock.now() - interval '0.5 seconds'
    order by job.run_at, job.id
    limit 1
) as first;
