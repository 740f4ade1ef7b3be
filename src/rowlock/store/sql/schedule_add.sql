-- Add a schedule of an operator's own; returns its name, or nothing where that is taken.
with added as (
    insert into rowlock.schedules (
        name, cron, tz, every, task, args, queue, priority, attempts, version, expires, tags, jitter, overlap,
        catch_up, at_boot, next_at, created_at
    )
    values (
        :name, :cron, :tz, :every::interval, :task, :args::json, :queue, :priority::smallint, :attempts::integer,
        :version::integer, :expires::interval, :tags::text[], :jitter::interval, :overlap, :catch_up::integer,
        :at_boot::boolean, :next_at::timestamptz, rowlock.now()
    )
    on conflict (name) do nothing
    returning name, task, next_at
),
logged as (
    insert into rowlock.events (kind, actor, details)
    select
        'added', :actor,
        json_strip_nulls(json_build_object('schedule', name, 'why', :why, 'task', task, 'next_at', next_at))
    from added
)
select name from added;
