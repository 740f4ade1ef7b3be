-- Pause a schedule: its slots are passed over. A pause that is there is replaced.
with paused as (
    update rowlock.schedules
    set
        paused_at = rowlock.now(), paused_until = coalesce(:until::timestamptz, rowlock.now() + :duration::interval),
        paused_by = :actor, paused_why = :why
    where name = :name
    returning name, paused_until
),
logged as (
    insert into rowlock.events (kind, actor, details)
    select 'paused', :actor, json_strip_nulls(json_build_object('schedule', name, 'why', :why, 'until', paused_until))
    from paused
)
select name from paused;
