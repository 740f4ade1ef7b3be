-- Sessions that have had locks on our tables, in one transaction, for at least so long: whoever could not change a table waited for one
-- of them. The longest first. A session of another user shows neither its state nor since when, unless this role may see that.
select
    held.pid, coalesce(session.application_name, ''), session.usename::text, session.state,
    array_agg(distinct class.relname::text order by class.relname::text),
    extract(epoch from clock_timestamp() - session.xact_start)::float8 as seconds
from pg_locks as held
join pg_class as class on class.oid = held.relation and class.relkind in ('r', 'p')
left join pg_stat_activity as session on session.pid = held.pid
where held.granted
    and held.locktype = 'relation'
    and held.database = (select oid from pg_database where datname = current_database())
    and held.pid is distinct from pg_backend_pid()
    and class.relnamespace = (select oid from pg_namespace where nspname = :schema)
    and (session.xact_start is null or session.xact_start <= clock_timestamp() - :seconds::float8 * interval '1 second')
group by held.pid, session.application_name, session.usename, session.state, session.xact_start
order by session.xact_start nulls last
limit :most::integer;
