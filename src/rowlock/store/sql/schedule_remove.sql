-- Remove a schedule. The jobs it has made live on, and its firings stay: should it come back, no slot is fired twice.
with gone as (
    delete from rowlock.schedules where name = :name returning name, task
),
logged as (
    insert into rowlock.events (kind, actor, details)
    select 'removed', :actor, json_strip_nulls(json_build_object('schedule', name, 'why', :why, 'task', task)) from gone
)
select name from gone;
