-- Take jobs back from workers without a fresh lease: ready again, failed as poison after :crashes crashes, or cancelled if
-- somebody had asked for that while they ran.
-- A crash is counted for what had begun; a job that had not, as far as is known, is marked (begun is null) so that the next worker
-- says when it begins. From :suspect crashes on a job is a suspect: it is set aside, and a worker runs one of them at a time. If a
-- worker dies with one, the crash is the suspect's alone. For a workflow that has recorded a step since it was claimed it is the
-- first one: what gets on is not what workers die of.
-- Nothing is done for a :worker whose own lease is over by the same clock. Workflows and children are always ready again: their row says how many crashes
-- there were and whether to cancel, and the worker that claims them ends them, which takes more than this statement knows.
-- Each is looked up by its id and the token of the attempt that was orphaned, and decided by the rows locked here: the job's,
-- and its worker's. A worker's row that is locked is being renewed, and is left alone; one that is taken for dead is marked so
-- that a renewal which waits for this statement finds its lease over. The row may be gone altogether: nobody can renew it.
with sent as materialized (
    select :ids::uuid[] as ids, :tokens::uuid[] as tokens
    where :worker is null or exists (
        select from rowlock.workers where id = :worker::uuid and lease > rowlock.now()
    )
),
dead as materialized (
    select id, host || ':' || pid as name from rowlock.workers
    where lease <= rowlock.now() and exists (select from sent)
    for update skip locked
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
beside as materialized (
    select worker, count(*)::integer as begun, bool_or(crashes >= :suspect::integer) as has_suspect
    from rowlock.jobs
    where state = 'running' and begun and worker = any(array(select worker from orphans))
    group by worker
),
blamed as materialized (
    select
        orphans.*, beside.begun as together,
        case
            when orphans.begun is not true then orphans.crashes
            when beside.has_suspect and orphans.crashes < :suspect::integer then orphans.crashes
            when orphans.version is not null and exists (
                select from rowlock.steps as step
                where step.job = orphans.id and step.state in ('done', 'failed') and step.ended_at > orphans.started_at
            ) then 1
            else orphans.crashes + 1
        end as counted,
        orphans.begun is true and (orphans.crashes >= :suspect::integer or not beside.has_suspect) as has_crashed
    from orphans
    left join beside on beside.worker = orphans.worker
),
named as materialized (
    select
        orphans.*,
        coalesce((select name from dead where dead.id = orphans.worker), 'unknown') as owner,
        case
            when orphans.cancel_at is not null and orphans.version is null and orphans.parent is null then 'cancelled'
            when orphans.counted >= :crashes::integer and orphans.version is null and orphans.parent is null then 'failed'
            when orphans.counted >= :suspect::integer then 'waiting'
            else 'ready'
        end as becomes,
        rowlock.add_error(
            orphans.errors,
            case when orphans.has_crashed then json_build_object(
                'type', 'WorkerLost', 'message', 'its worker stopped renewing its lease; ' || case orphans.together
                    when 1 then 'nothing else ran there'
                    when 2 then '1 other job ran there'
                    else orphans.together - 1 || ' other jobs ran there'
                end
            )::text end,
            orphans.claims, orphans.worker, orphans.started_at
        ) as told,
        orphans.cancel_at is null and orphans.has_crashed and orphans.counted >= :crashes::integer as poison
    from blamed as orphans
),
marked as (
    update rowlock.workers
    set dead = true
    where id = any(array(select id from dead)) and not workers.dead
),
rescued as (
    update rowlock.jobs
    set state = (select becomes from named where named.id = jobs.id), token = null,
        waits_for = (select 'suspect' from named where named.id = jobs.id and becomes = 'waiting'),
        reason = (
            select counted || ' workers died while they ran it; each worker runs one such job at a time'
            from named
            where named.id = jobs.id and becomes = 'waiting'
        ),
        crashes = (select counted from named where named.id = jobs.id),
        begun = case when begun then true end,
        errors = (select told from named where named.id = jobs.id)
    where id = any(array(select id from named where becomes in ('ready', 'waiting')))
),
gone as (
    delete from rowlock.jobs where id = any(array(select id from named where becomes in ('failed', 'cancelled')))
),
freed as (
    delete from rowlock.keys
    where key = any(array(select key from named where becomes in ('failed', 'cancelled') and key is not null))
        and job = any(array(select id from named where becomes in ('failed', 'cancelled')))
),
kept as (
    insert into rowlock.history (
        {copied}, crashes, failures, errors, ended_at, state, reason, expires_on
    )
    select
        {copied}, counted, failures, told, rowlock.now(), becomes, case becomes when 'failed' then 'poison' else 'asked' end,
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
        )::date
    from named
    where becomes in ('failed', 'cancelled')
),
logged as (
    insert into rowlock.events (kind, job, actor, details)
    select
        case when poison then 'poisoned' else 'rescued' end, id, :actor,
        json_build_object(
            'task', task, 'queue', queue, 'worker', worker, 'owner', owner, 'crashes', counted, 'crashed', has_crashed, 'becomes', becomes
        )
    from named
)
select
    id, token, task, queue, failures, worker, owner, counted as crashes, has_crashed, becomes,
    (
        select count(rowlock.notify(rowlock.channel(parked.queue), 'below'))
        from rowlock.parked
        where parked.queue = any(array(select back.queue from named as back where back.becomes = 'ready'))
    ) as woken,
    (
        select count(rowlock.notify('rowlock:' || waiter.listener, ''))
        from rowlock.waiters as waiter
        where waiter.job = any(array(select ended.id from named as ended where ended.becomes in ('failed', 'cancelled')))
    ) as told,
    (
        select count(rowlock.notify(rowlock.channel(aside.queue), 'suspect'))
        from (select distinct queue from named where becomes = 'waiting') as aside
    ) as called
from named;
