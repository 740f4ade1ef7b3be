-- Give back the jobs that this worker holds without knowing of them, at once and at no cost: all of them when it stops; after
-- a broken connection, those whose claim was committed but never heard of. :known are the tokens it knows of.
-- They are searched for as in worker_held: those that it was seen to hold, and what it has claimed since.
-- One that is being cancelled may not become ready again, and is left to whoever settles or rescues it; but a workflow or a
-- child that is ready stays marked, and is settled by its next worker.
with since as materialized (
    select case
        when :since::timestamptz + interval '1 minute' <= rowlock.now() then :since::timestamptz else '-infinity'
    end as moment
),
sent as materialized (
    select :ids::uuid[] as ids, :tokens::uuid[] as tokens
),
claimed as materialized (
    select id, token
    from rowlock.jobs
    where state = 'running' and worker = :worker::uuid and started_at >= (select moment from since)
),
held as materialized (
    select id, token from sent cross join unnest(sent.ids, sent.tokens) as attempt (id, token)
    union
    select id, token from claimed
    order by id
),
mine as materialized (
    select job.id, job.queue
    from held
    cross join lateral (
        select one.id, one.queue
        from rowlock.jobs as one
        where one.id = held.id and one.token = held.token
            and (one.cancel_at is null or one.version is not null or one.parent is not null)
        for update skip locked
    ) as job
    where held.token <> all(array(select unnest(:known::uuid[])))
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
