-- Whether a job that runs has begun, as far as its worker has said; and who has its row locked, if anybody has: a session that
-- changes it, or has selected it for update, and has not committed. It is found by the transaction that stands on the row, or by
-- the list of transactions whose number does (row_holders); of several the one that began first, and how many others there are.
-- Only sessions that have rows of jobs locked: an old number that is left on the row may be a list's by now.
select job.begun, session.pid, session.application, session.user, session.seconds, session.others
from (
    select
        job.begun, job.xmax as holder,
        case
            when mxid_age(job.xmax) between 1 and (
                select mxid_age(datminmxid) from pg_database where datname = current_database()
            ) then job.xmax
        end as list
    from rowlock.jobs as job
    where job.id = :id::uuid
) as job
left join lateral (
    select
        held.pid, coalesce(activity.application_name, '') as application, activity.usename::text as user,
        extract(epoch from clock_timestamp() - activity.xact_start)::float8 as seconds, (count(*) over ())::integer - 1 as others
    from (
        select distinct pid
        from pg_locks
        where locktype = 'transactionid' and granted and mode = 'ExclusiveLock'
            and (
                transactionid = job.holder
                or transactionid = any(array(select member.xid from pg_get_multixact_members(job.list) as member))
            )
            and pid = any(array(
                select table_lock.pid
                from pg_locks as table_lock
                where table_lock.locktype = 'relation' and table_lock.granted
                    and table_lock.database = (select oid from pg_database where datname = current_database())
                    and table_lock.relation = 'rowlock.jobs'::regclass
                    and table_lock.mode in ('RowShareLock', 'RowExclusiveLock')
            ))
    ) as held
    left join pg_stat_activity as activity on activity.pid = held.pid
    order by activity.xact_start, held.pid
    limit 1
) as session on true;
