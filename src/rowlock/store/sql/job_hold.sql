-- Whether a job that runs has begun, as far as its worker has said; and who has its row locked, if anybody has: a session that
-- changes it, or has selected it for update, and has not committed. It is found by the transaction that stands on the row.
select job.begun, session.pid, session.application, session.user, session.seconds
from (select job.begun, job.xmax as holder from rowlock.jobs as job where job.id = :id::uuid) as job
left join lateral (
    select
        held.pid, coalesce(activity.application_name, '') as application, activity.usename::text as user,
        extract(epoch from clock_timestamp() - activity.xact_start)::float8 as seconds
    from pg_locks as held
    left join pg_stat_activity as activity on activity.pid = held.pid
    where held.locktype = 'transactionid' and held.granted and held.mode = 'ExclusiveLock'
        and held.transactionid = job.holder
    limit 1
) as session on true;
