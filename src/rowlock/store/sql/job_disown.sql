-- Give back the jobs of these claims, at once and at no cost: their worker was never told of them.
-- By id, token and worker: one that has been rescued, settled or claimed again meanwhile is not found.
with sent as materialized (
    select :ids::uuid[] as ids, :tokens::uuid[] as tokens, :worker::uuid as worker
),
mine as materialized (
    select job.id, job.queue
    from sent
    cross join unnest(sent.ids, sent.tokens) as attempt (id, token)
    cross join lateral (
        select one.id, one.queue, one.worker
        from rowlock.jobs as one
        where one.id = attempt.id and one.token = attempt.token
            and (one.cancel_at is null or one.version is not null or one.parent is not null)
        for update skip locked
    ) as job
    where job.worker = sent.worker
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
