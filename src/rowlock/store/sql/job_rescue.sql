-- Take jobs back from workers without a fresh lease: ready again, failed as poison after :crashes crashes, or cancelled if
-- somebody had asked for that while they ran. Workflows and children are always ready again: their row says how many crashes
-- there were and whether to cancel, and the worker that claims them ends them, which takes more than this statement knows.
-- Each is looked up by its id and the token of the attempt that was orphaned, and decided by the rows locked here: the job's,
-- and its worker's. A worker's row that is locked is being renewed, and is left alone; one that is taken for dead is marked so
-- that a renewal which waits for this statement finds its lease over. The row may be gone altogether: nobody can renew it.
with sent as materialized (
    select :ids::uuid[] as ids, :tokens::uuid[] as tokens
),
dead as materialized (
    select id, host || ':' || pid as name from rowlock.workers where lease <= rowlock.now() for update skip locked
),
orphans as materialized (
    select job.*
    from sent
    cross join unnest(sent.ids, sent.tokens) as orphan (id, token)
    cross join lateral (
        select job.*
        from rowlock.jobs as job
        where job.id = orphan.id
            and job.token = orphan.token
            and (
                job.worker = any(array(select id from dead))
                or not exists (select from rowlock.workers as worker where worker.id = job.worker)
            )
        for update skip locked
    ) as job
),
named as materialized (
    select
        orphans.*,
        coalesce((select name from dead where dead.id = orphans.worker), 'unknown') as owner,
        case
            when orphans.version is not null or orphans.parent is not null then 'ready'
            when orphans.cancel_at is not null then 'cancelled'
            when orphans.crashes + 1 >= :crashes::integer then 'failed'
            else 'ready'
        end as becomes,
        rowlock.add_error(
            orphans.errors,
            json_build_object('type', 'WorkerLost', 'message', 'its worker stopped renewing its lease')::text,
            orphans.claims, orphans.worker, orphans.started_at
        ) as told,
        orphans.cancel_at is null and orphans.crashes + 1 >= :crashes::integer as poison
    from orphans
),
marked as (
    update rowlock.workers
    set lease = least(started_at, rowlock.now())
    where id = any(array(select id from dead)) and lease > started_at
),
rescued as (
    update rowlock.jobs
    set state = 'ready', token = null, crashes = crashes + 1,
        errors = (select told from named where named.id = jobs.id)
    where id = any(array(select id from named where becomes = 'ready'))
),
gone as (
    delete from rowlock.jobs where id = any(array(select id from named where becomes <> 'ready'))
),
freed as (
    delete from rowlock.keys
    where key = any(array(select key from named where becomes <> 'ready' and key is not null))
        and job = any(array(select id from named where becomes <> 'ready'))
),
kept as (
    insert into rowlock.history (
        id, queue, task, state, priority, failures, crashes, claims, attempts, run_at, created_at, started_at, ended_at,
        expires_on, worker, args, key, tags, reason, errors, progress
    )
    select
        id, queue, task, becomes, priority, failures, crashes + 1, claims, attempts, run_at, created_at, started_at,
        rowlock.now(),
        (
            (rowlock.now() + case becomes
                when 'failed' then coalesce(
                    (select asked.keep_failed from rowlock.queues as asked where asked.name = named.queue),
                    :keep_failed::interval
                )
                else coalesce(
                    (select asked.keep_cancelled from rowlock.queues as asked where asked.name = named.queue),
                    :keep_cancelled::interval
                )
            end) at time zone 'UTC'
        )::date,
        worker, args, key, tags, case becomes when 'failed' then 'poison' else 'asked' end, told, progress
    from named
    where becomes <> 'ready'
),
logged as (
    insert into rowlock.events (kind, job, actor, details)
    select
        case when poison then 'poisoned' else 'rescued' end, id, :actor,
        json_build_object(
            'task', task, 'queue', queue, 'worker', worker, 'owner', owner, 'crashes', crashes + 1, 'becomes', becomes
        )
    from named
)
select
    id, token, task, queue, worker, owner, crashes + 1 as crashes, becomes,
    (
        select count(pg_notify(rowlock.channel(parked.queue), 'below'))
        from rowlock.parked
        where parked.queue = any(array(select back.queue from named as back where back.becomes = 'ready'))
    ) as woken,
    (
        select count(pg_notify('rowlock:' || waiter.listener, ''))
        from rowlock.waiters as waiter
        where waiter.job = any(array(select ended.id from named as ended where ended.becomes <> 'ready'))
    ) as told
from named;
