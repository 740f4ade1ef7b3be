-- Cancel jobs of a schedule, because its next one replaces them: ready and waiting ones end, running ones are marked.
-- As job_cancel does it; but a worker says this, who may not act as an operator: it has a kind of event of its own, and it is
-- only for what that schedule has made. Such jobs have no keys.
with mine as materialized (
    select
        job.*,
        job.parent is not null or (job.version is not null and (job.claims > 0 or job.wakes > 0)) as bound
    from rowlock.jobs as job
    where job.id = any(:ids::uuid[])
        and job.id = any(array(select unnest(jobs) from rowlock.schedules where name = :schedule))
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
gone as (
    delete from rowlock.jobs where id = any(array(select id from mine where state <> 'running' and not bound))
),
kept as (
    insert into rowlock.history (
        {copied}, crashes, failures, errors, ended_at, state, reason, expires_on
    )
    select
        {copied}, crashes, failures, errors, rowlock.now(), 'cancelled', 'asked',
        (
            (rowlock.now() + coalesce(
                (select asked.keep_cancelled from rowlock.queues as asked where asked.name = mine.queue), :keep::interval
            )) at time zone 'UTC'
        )::date
    from mine
    where state <> 'running' and not bound
),
logged as (
    insert into rowlock.events (kind, job, actor, details)
    select
        'replaced', id, :actor,
        json_strip_nulls(json_build_object(
            'task', task, 'queue', queue, 'why', 'the next job of its schedule replaces it', 'schedule', :schedule,
            'state', state, 'run_at', run_at, 'worker', case when state = 'running' then worker end
        ))
    from mine
)
select
    count(*)::integer as changed,
    (
        select count(rowlock.notify('rowlock:' || waiter.listener, ''))
        from rowlock.waiters as waiter
        where waiter.job = any(array(select id from mine where state <> 'running' and not bound))
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
