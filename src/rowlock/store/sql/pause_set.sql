-- Pause a queue or a task; a pause that is there is replaced.
with made as (
    insert into rowlock.pauses (kind, name, until, reason, actor, at)
    values (
        :kind, :name, coalesce(:until::timestamptz, rowlock.now() + :duration::interval), :why, :actor, rowlock.now()
    )
    on conflict (kind, name) do update
    set until = excluded.until, reason = excluded.reason, actor = excluded.actor, at = excluded.at
    returning kind, name, until, reason, actor, at
),
logged as (
    insert into rowlock.events (kind, actor, details)
    select 'paused', actor, json_strip_nulls(json_build_object(kind, name, 'why', reason, 'until', until))
    from made
)
select kind, name, until, reason, actor, at from made;
