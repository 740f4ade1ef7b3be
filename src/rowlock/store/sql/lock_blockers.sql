-- Sessions that have had locks on our tables, or that of migrations, in one transaction, for at least so long: whoever could not
-- change a table waited for one of them. The longest first. A session of another user shows neither its state nor since when,
-- unless this role may see that.
select
    held.pid, coalesce(session.application_name, ''), session.usename::text, session.state,
    array_agg(distinct held.what order by held.what),
    extract(epoch from clock_timestamp() - session.xact_start)::float8 as seconds
from (
    select lock.pid, class.relname::text as what
    from pg_locks as lock
    join pg_class as class on class.oid = lock.relation and class.relkind in ('r', 'p')
    where lock.granted
        and lock.locktype = 'relation'
        and lock.database = (select oid from pg_database where datname = current_database())
        and class.relnamespace = (select oid from pg_namespace where nspname = :schema)
    union all
    -- An advisory lock on a bigint: its halves stand in two columns.
    select lock.pid, 'the lock of migrations'
    from pg_locks as lock
    where lock.granted
        and lock.locktype = 'advisory'
        and lock.database = (select oid from pg_database where datname = current_database())
        and lock.objsubid = 1
        and (lock.classid::bigint << 32) + lock.objid::bigint = hashtextextended(:schema || '.migrate', 0)
) as held
left join pg_stat_activity as session on session.pid = held.pid
where held.pid is distinct from pg_backend_pid()
    and (session.xact_start is null or session.xact_start <= clock_timestamp() - :seconds::float8 * interval '1 second')
group by held.pid, session.application_name, session.usename, session.state, session.xact_start
order by session.xact_start nulls last
limit :most::integer;
