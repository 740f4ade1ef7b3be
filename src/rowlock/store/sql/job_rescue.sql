-- Take back up to :limit jobs from workers without a fresh lease: ready again, or failed as poison after :crashes crashes.
-- Decides only by rows it locks and by leases: no task registry, no live former owner. A worker's row may be gone altogether
-- (:lost looks for those too; it walks every running job, so it is asked for seldom).
with dead as materialized (
    select id, host || ':' || pid as name from rowlock.workers where lease <= rowlock.now()
),
orphans as materialized (
    select job.*
    from rowlock.jobs as job
    where job.state = 'running'
        and (
            job.worker = any(array(select id from dead))
            or :lost::boolean and not exists (select from rowlock.workers as worker where worker.id = job.worker)
        )
    order by job.id
    limit :limit::integer
    for update skip locked
),
named as materialized (
    select
        orphans.*,
        coalesce((select name from dead where dead.id = orphans.worker), 'unknown') as owner,
        orphans.crashes + 1 >= :crashes::integer as poison,
        json_build_object('type', 'WorkerLost', 'message', 'its worker stopped renewing its lease')::text as failure
    from orphans
),
rescued as (
    update rowlock.jobs
    set state = 'ready', token = null, crashes = crashes + 1,
        errors = rowlock.add_error(errors, (select failure from named limit 1), claims, worker, started_at)
    where id = any(array(select id from named where not poison))
),
poisoned as (
    delete from rowlock.jobs where id = any(array(select id from named where poison))
),
freed as (
    delete from rowlock.keys
    where key = any(array(select key from named where poison and key is not null))
        and job = any(array(select id from named where poison))
),
kept as (
    insert into rowlock.history (
        id, queue, task, state, priority, failures, crashes, claims, attempts, run_at, created_at, started_at, ended_at,
        expires_on, worker, args, key, tags, reason, errors, progress
    )
    select
        id, queue, task, 'failed', priority, failures, crashes + 1, claims, attempts, run_at, created_at, started_at,
        rowlock.now(), ((rowlock.now() + :keep::interval) at time zone 'UTC')::date, worker, args, key, tags, 'poison',
        rowlock.add_error(errors, failure, claims, worker, started_at), progress
    from named
    where poison
),
logged as (
    insert into rowlock.events (kind, job, actor, details)
    select
        case when poison then 'poisoned' else 'rescued' end, id, :actor,
        json_build_object('task', task, 'queue', queue, 'worker', worker, 'owner', owner, 'crashes', crashes + 1)
    from named
)
select
    id, task, queue, worker, owner, crashes + 1 as crashes, poison,
    (
        select count(pg_notify(rowlock.channel(parked.queue), 'below'))
        from rowlock.parked
        where parked.queue = any(array(select back.queue from named as back where not back.poison))
    ) as woken,
    (
        select count(pg_notify('rowlock:' || waiter.listener, ''))
        from rowlock.waiters as waiter
        where waiter.job = any(array(select ended.id from named as ended where ended.poison))
    ) as told
from named;
