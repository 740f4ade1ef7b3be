-- Give a ready or waiting job other arguments; returns the names of those that differ, and no row if it must be left alone.
-- So are a workflow that has begun and a child: what they were given stands in a record already.
-- A job that waits for code may have been refused for its arguments. It is ready again, to be looked at with the new ones; its
-- run_at may lie below claims' floors, so workers are told. What was given is not for everybody who reads events: only its name.
with mine as materialized (
    select
        job.id, job.task, job.queue, job.waits_for,
        case when json_typeof(job.args) = 'object' then job.args else '{}'::json end as args
    from rowlock.jobs as job
    where job.id = :id::uuid
        and job.state = any('{ready,waiting}'::text[])
        and job.parent is null
        and (job.version is null or job.claims = 0)
    for update
),
other as materialized (
    select named.name
    from mine
    cross join lateral (
        select json_object_keys(mine.args) union select json_object_keys(:args::json)
    ) as named (name)
    where (mine.args -> named.name)::text is distinct from (:args::json -> named.name)::text
),
changed as (
    update rowlock.jobs
    set args = :args::json,
        state = case when waits_for = 'code' then 'ready' else state end,
        reason = case when waits_for = 'code' then null else reason end,
        waits_for = nullif(waits_for, 'code')
    where id = any(array(select id from mine)) and exists (select from other)
),
logged as (
    insert into rowlock.events (kind, job, actor, details)
    select
        'edited', id, :actor,
        json_strip_nulls(json_build_object(
            'task', task, 'queue', queue, 'why', :why, 'arguments', (select json_agg(name order by name) from other)
        ))
    from mine
    where exists (select from other)
)
select
    array(select name from other order by name) as names,
    (
        select count(rowlock.notify(rowlock.channel(parked.queue), 'below'))
        from rowlock.parked
        where parked.queue = mine.queue and mine.waits_for = 'code' and exists (select from other)
    ) as woken
from mine;
