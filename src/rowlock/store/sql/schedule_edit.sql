-- Change a schedule that this transaction has locked: what is in force, and what of it an operator says differently.
with edited as (
    update rowlock.schedules
    set
        cron = :cron, tz = :tz, every = :every::interval, args = :args::json, queue = :queue,
        priority = :priority::smallint, expires = :expires::interval, jitter = :jitter::interval, overlap = :overlap,
        catch_up = :catch_up::integer, at_boot = :at_boot::boolean, edits = :edits::json, next_at = :next_at::timestamptz
    where name = :name
    returning name
),
logged as (
    insert into rowlock.events (kind, actor, details)
    select
        'edited', :actor,
        json_strip_nulls(json_build_object('schedule', name, 'why', :why, 'changes', :changes::json))
    from edited
)
select name from edited;
