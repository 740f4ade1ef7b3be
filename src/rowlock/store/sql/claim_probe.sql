-- Measure what a claim that looks from the bottom of these lanes would touch: the same look, but it locks and claims nothing.
-- It asks how often they may be tried because a claim must visit the jobs themselves; for the id alone the index would do.
explain (analyze, buffers, timing off, format json)
select due.attempts
from unnest(:queues::text[], :priorities::smallint[]) as lane (queue, priority)
cross join lateral (
    select job.attempts
    from rowlock.jobs as job
    where job.state = 'ready'
        and job.queue = lane.queue
        and job.priority = lane.priority
        and job.run_at <= rowlock.now()
        and (job.run_at, job.id) > ('-infinity', '00000000-0000-0000-0000-000000000000')
    order by job.run_at, job.id
    limit :limit::integer
) as due
limit :limit::integer;
