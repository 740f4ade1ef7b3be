-- Sessions that have locked rows of duties, the oldest transaction first, and which rows: found by the transaction that stands on
-- a row. Of a row that several share nobody is found so, hence the sessions are those with a lock on the table that writing or
-- locking its rows takes; who only reads has none.
select
    held.pid, coalesce(session.application_name, ''), session.usename::text, session.state,
    extract(epoch from clock_timestamp() - session.xact_start)::float8,
    extract(epoch from clock_timestamp() - session.query_start)::float8,
    array(
        select duty.name
        from rowlock.duties as duty
        join pg_locks as owner on owner.transactionid = duty.xmax
        where owner.pid = held.pid and owner.locktype = 'transactionid' and owner.granted and owner.mode = 'ExclusiveLock'
        order by duty.name <> 'rescue', duty.name <> 'schedules', duty.name
    ) as duties
from pg_locks as held
left join pg_stat_activity as session on session.pid = held.pid
where held.granted
    and held.locktype = 'relation'
    and held.database = (select oid from pg_database where datname = current_database())
    and held.relation = 'rowlock.duties'::regclass
    and held.mode in ('RowShareLock', 'RowExclusiveLock')
    and held.pid <> pg_backend_pid()
order by session.xact_start
limit :most::integer;
