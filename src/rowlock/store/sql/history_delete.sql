-- Remove ended jobs; keys that were kept for their periods are free, and only their events remain.
-- Only the partitions between two days are opened.
with mine as materialized (
    select ended.id, ended.task, ended.queue, ended.state, ended.key
    from rowlock.history as ended
    where ended.id = any(:ids::uuid[])
        and ended.state = any(:states::text[])
        and ended.expires_on between :first_day::date and :last_day::date
    order by ended.id
    for update skip locked
),
gone as (
    delete from rowlock.history
    where id = any(array(select id from mine)) and expires_on between :first_day::date and :last_day::date
),
freed as (
    delete from rowlock.keys
    where key = any(array(select key from mine where key is not null)) and job = any(array(select id from mine))
),
logged as (
    insert into rowlock.events (kind, job, actor, details)
    select
        'deleted', id, :actor,
        json_strip_nulls(json_build_object('task', task, 'queue', queue, 'why', :why, 'state', state, 'key', key))
    from mine
)
select count(*)::integer as changed from mine;
