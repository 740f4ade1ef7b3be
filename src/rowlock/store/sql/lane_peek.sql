-- The due jobs that a claim of these lanes would find, in their order, and where each stands: what is large is not read.
-- For a claim that fails, so that it can be made for one job at a time.
select due.queue, due.priority, due.run_at, due.id
from unnest(
    :queues::text[], :priorities::smallint[], :floor_run_ats::timestamptz[], :floor_ids::uuid[]
) as lane (queue, priority, run_at, id)
cross join lateral (
    select job.queue, job.priority, job.run_at, job.id
    from rowlock.jobs as job
    where job.state = 'ready'
        and job.queue = lane.queue
        and job.priority = lane.priority
        and job.run_at <= rowlock.now()
        and (job.run_at, job.id) > (lane.run_at, lane.id)
    order by job.run_at, job.id
    limit :limit::integer
) as due
where lane.queue <> all(array(
    select name from rowlock.pauses where kind = 'queue' and coalesce(until > rowlock.now(), true)
))
limit :limit::integer;
