-- Give back the jobs of these claims, at once and at no cost: their worker was never told of them.
-- By worker and token: one that has been rescued, settled or claimed anew meanwhile is not found.
with mine as materialized (
    select id, queue
    from rowlock.jobs
    where state = 'running'
        and worker = :worker::uuid
        and token = any(array(select unnest(:tokens::uuid[])))
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
