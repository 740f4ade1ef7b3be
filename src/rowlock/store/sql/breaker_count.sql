-- Count failures of tasks that have a breaker, and pause those of which there are too many; returns these.
-- Each row is changed where it is locked, from what it holds by then: of two workers that count at once the second goes on
-- from the first one's count. The newest :limits are kept; when the oldest of as many is younger than :windows, they are
-- cleared away, which is how the statement knows, and only one of the two finds them there.
-- A task that is paused is not counted: what fails then was started before, and says nothing new.
with sent as materialized (
    select
        :tasks::text[] as tasks, :counts::integer[] as counts, :limits::integer[] as limits,
        :windows::interval[] as windows, :pauses::interval[] as pauses, :reasons::text[] as reasons
),
failed as materialized (
    select failed.*
    from sent
    cross join unnest(
        sent.tasks, sent.counts, sent.limits, sent.windows, sent.pauses, sent.reasons
    ) as failed (task, count, failures, span, pause, why)
    where not exists (
        select from rowlock.pauses as pause
        where pause.kind = 'task' and pause.name = failed.task and coalesce(pause.until > rowlock.now(), true)
    )
),
counted as (
    insert into rowlock.breakers as breaker (task, failed_at)
    select
        failed.task,
        case when failed.count < failed.failures then array_fill(rowlock.now(), array[failed.count]) else '{}' end
    from failed
    order by failed.task
    on conflict (task) do update
    set failed_at = (
        select case
                when excluded.failed_at = '{}' then '{}'
                when cardinality(latest.failed_at) < failed.failures then latest.failed_at
                when latest.failed_at[1] <= rowlock.now() - failed.span then latest.failed_at
                else '{}'
            end
        from failed
        cross join lateral (
            select (breaker.failed_at || excluded.failed_at)[
                greatest(1, cardinality(breaker.failed_at) + failed.count - failed.failures + 1):
            ] as failed_at
        ) as latest
        where failed.task = excluded.task
    )
    returning breaker.task, breaker.failed_at = '{}' as tripped
)
select failed.task
from failed
where failed.task = any(array(select counted.task from counted where counted.tripped))
    and rowlock.trip(failed.task, failed.pause, failed.why);
