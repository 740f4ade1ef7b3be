-- Cancel jobs, because somebody asked: ready and waiting ones end, and their keys are free; running ones are marked.
-- Decides by the rows it locks: one that was asked for as ready and runs by now is left alone. A marked job can only end as
-- cancelled, whatever becomes of its attempt, and until then its key is held. Its worker is told; should that get lost, it
-- looks for marks of its own accord.
-- A workflow has steps to undo and signals to fold, and a child a parent to tell: they are `bound` to a worker, unless nothing
-- has happened to them yet. Marked, and ready at once, they end by the worker that claims them.
with mine as materialized (
    select
        job.*,
        job.parent is not null or (job.version is not null and (job.claims > 0 or job.wakes > 0)) as bound
    from rowlock.jobs as job
    where job.id = any(:ids::uuid[])
        and rowlock.shown_state(job.state, job.waits_for, job.wakes_at, job.run_at) = any(:states::text[])
        and job.cancel_at is null
    order by job.id
    for update skip locked
),
marked as (
    update rowlock.jobs set cancel_at = rowlock.now() where id = any(array(select id from mine where state = 'running'))
),
called as (
    update rowlock.jobs
    set cancel_at = rowlock.now(), state = 'ready', waits_for = null, reason = null, wakes_at = null,
        run_at = case state when 'ready' then least(run_at, rowlock.now()) else rowlock.now() end
    where id = any(array(select id from mine where state <> 'running' and bound))
),
over as materialized (
    select *, rowlock.now() + coalesce(
        (select asked.keep_cancelled from rowlock.queues as asked where asked.name = mine.queue), :keep::interval
    ) as until
    from mine
    where state <> 'running' and not bound
),
gone as (
    delete from rowlock.jobs where id = any(array(select id from over))
),
freed as (
    delete from rowlock.keys
    where key = any(array(select key from over where key is not null and version is null))
        and job = any(array(select id from over))
),
withheld as (
    update rowlock.keys set until = (select over.until from over where over.id = keys.job)
    where key = any(array(select key from over where key is not null and version is not null))
        and job = any(array(select id from over))
),
kept as (
    insert into rowlock.history (
        {copied}, crashes, failures, errors, ended_at, state, reason, expires_on
    )
    select
        {copied}, crashes, failures, errors, rowlock.now(), 'cancelled', 'asked', (until at time zone 'UTC')::date
    from over
),
logged as (
    insert into rowlock.events (kind, job, actor, details)
    select
        'cancelled', id, :actor,
        json_strip_nulls(json_build_object(
            'task', task, 'queue', queue, 'why', :why, 'state', state, 'waits_for', waits_for, 'run_at', run_at,
            'worker', case when state = 'running' then worker end
        ))
    from mine
)
select
    count(*)::integer as changed,
    (
        select count(rowlock.notify('rowlock:' || waiter.listener, ''))
        from rowlock.waiters as waiter
        where waiter.job = any(array(select id from over))
    ) as told,
    (
        select count(rowlock.notify(rowlock.channel(parked.queue), ''))
        from rowlock.parked
        where parked.queue = any(array(select called.queue from mine as called where state <> 'running' and bound))
    ) as woken,
    (
        select count(rowlock.notify('rowlock:' || asked.worker, 'cancel'))
        from (select distinct worker from mine where state = 'running') as asked
    ) as asked
from mine;
