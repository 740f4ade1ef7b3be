-- Give back the jobs that this worker holds without knowing of them, at once and at no cost: all of them when it stops; after
-- a broken connection, those whose claim was committed but never answered. :known are the tokens it knows of.
-- One that is being cancelled may not become ready again, and is left to whoever settles or rescues it; but a workflow or a
-- child that is ready stays marked, and is settled by its next worker.
with mine as materialized (
    select id, queue
    from rowlock.jobs
    where state = 'running'
        and worker = :worker::uuid
        and token <> all(array(select unnest(:known::uuid[])))
        and (cancel_at is null or version is not null or parent is not null)
    order by id
    for update skip locked
),
returned as (
    update rowlock.jobs set state = 'ready', token = null where id = any(array(select id from mine))
)
select
    id,
    (
        select count(rowlock.notify(rowlock.channel(parked.queue), 'below'))
        from rowlock.parked
        where parked.queue = any(array(select back.queue from mine as back))
    ) as woken
from mine;
