-- End the pause of a queue or a task, if there is one. Workers parked on the queue are told to look, also below their floors.
-- The jobs of a task that were set aside are released by statements of their own (job_release), a chunk at a time.
-- What a breaker has counted of the task is forgotten; first, for a count locks that and then the pause.
with forgotten as (
    delete from rowlock.breakers where :kind = 'task' and task = :name returning task
),
gone as (
    delete from rowlock.pauses
    where kind = :kind and name = :name and (select count(*) >= 0 from forgotten)
    returning kind, name
),
logged as (
    insert into rowlock.events (kind, actor, details)
    select 'resumed', :actor, json_strip_nulls(json_build_object(kind, name, 'why', :why)) from gone
)
select
    name,
    (
        select count(rowlock.notify(rowlock.channel(parked.queue), 'below'))
        from rowlock.parked
        where parked.queue = :name and :kind = 'queue' and exists (select from gone)
    ) as woken
from gone;
