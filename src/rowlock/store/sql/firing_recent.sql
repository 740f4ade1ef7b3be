-- What became of the latest slots of each of these schedules, newest first, no more than :limit of each.
select
    firing.schedule, firing.slot, firing.job, firing.reason, firing.at,
    coalesce(
        (
            select rowlock.shown_state(job.state, job.waits_for, job.wakes_at, job.run_at)
            from rowlock.jobs as job
            where job.id = firing.job
        ),
        (select past.state from rowlock.history as past where past.id = firing.job limit 1)
    ) as state
from unnest(:schedules::text[]) as asked (name)
cross join lateral (
    select recent.schedule, recent.slot, recent.job, recent.reason, recent.at
    from rowlock.firings as recent
    where recent.schedule = asked.name
    order by recent.slot desc
    limit :limit::integer
) as firing;
