-- What became of the latest slots of a schedule, newest first, and of the jobs that were made for them.
select
    firing.slot, firing.job, firing.reason, firing.at,
    coalesce(
        (
            select rowlock.shown_state(job.state, job.waits_for, job.wakes_at, job.run_at)
            from rowlock.jobs as job
            where job.id = firing.job
        ),
        (select past.state from rowlock.history as past where past.id = firing.job limit 1)
    ) as state
from rowlock.firings as firing
where firing.schedule = :schedule
order by firing.slot desc
limit :limit::integer;
