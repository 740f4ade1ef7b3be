-- Let a schedule go on that this transaction has locked, from its next slot on.
with resumed as (
    update rowlock.schedules
    set
        paused_at = null, paused_until = null, paused_by = null, paused_why = null, next_at = :next_at::timestamptz
    where name = :name
    returning name, next_at
),
logged as (
    insert into rowlock.events (kind, actor, details)
    select 'resumed', :actor, json_strip_nulls(json_build_object('schedule', name, 'why', :why, 'next_at', next_at))
    from resumed
)
select name from resumed;
