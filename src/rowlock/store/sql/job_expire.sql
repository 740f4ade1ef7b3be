-- End up to :limit jobs that are not worth starting any more: they are cancelled as expired, and their keys are free.
-- Also where nobody claims: in a paused queue, without a worker, waiting for code. Those that run are left alone, by what the
-- row says once it is locked; what somebody else has locked is being claimed or ended.
-- A workflow that has begun, or has been sent a signal, and any child are left to the worker that claims them; the index holds
-- none of those that have begun, so that no look walks over them.
-- :without are jobs that PostgreSQL fails to end: they must not stand before the others forever.
with mine as materialized (
    select job.*, rowlock.now() + coalesce(
        (select asked.keep_cancelled from rowlock.queues as asked where asked.name = job.queue), :keep::interval
    ) as until
    from rowlock.jobs as job
    where job.expires_at <= rowlock.now() and job.state <> 'running'
        and job.parent is null and (job.version is null or job.claims = 0) and (job.version is null or job.wakes = 0)
        and job.id <> all(:without::uuid[])
    order by job.expires_at
    limit :limit::integer
    for update skip locked
),
gone as (
    delete from rowlock.jobs where id = any(array(select id from mine))
),
freed as (
    delete from rowlock.keys
    where key = any(array(select key from mine where key is not null and version is null))
        and job = any(array(select id from mine))
),
withheld as (
    update rowlock.keys set until = (select mine.until from mine where mine.id = keys.job)
    where key = any(array(select key from mine where key is not null and version is not null))
        and job = any(array(select id from mine))
),
kept as (
    insert into rowlock.history (
        {copied}, crashes, failures, errors, ended_at, state, reason, expires_on
    )
    select
        {copied}, crashes, failures, errors, rowlock.now(), 'cancelled', 'expired', (until at time zone 'UTC')::date
    from mine
)
select
    count(*)::integer as expired,
    (
        select count(rowlock.notify('rowlock:' || waiter.listener, ''))
        from rowlock.waiters as waiter
        where waiter.job = any(array(select id from mine))
    ) as told
from mine;
