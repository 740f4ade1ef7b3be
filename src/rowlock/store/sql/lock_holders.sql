-- Sessions that hold a lock on a table of ours with which nobody can write to it, or not even read it.
-- What stops all jobs comes first, then the longest. A part of history or of events counts as its table: each session and table is
-- one row.
-- Asked for by names of the catalogue alone, so that it waits for none of these locks.
select pid, application, login, state, class, mode, seconds, whole
from (
    select distinct on (held.pid, whole.relname)
        held.pid, coalesce(session.application_name, '') as application, session.usename::text as login, session.state,
        class.relname::text as class, held.mode, session.xact_start, whole.relname::text as whole,
        extract(epoch from clock_timestamp() - session.xact_start)::float8 as seconds
    from pg_locks as held
    join pg_class as class on class.oid = held.relation and class.relkind in ('r', 'p')
    left join pg_inherits as link on link.inhrelid = class.oid
    join pg_class as whole on whole.oid = coalesce(link.inhparent, class.oid)
    left join pg_stat_activity as session on session.pid = held.pid
    where held.granted
        and held.locktype = 'relation'
        and held.database = (select oid from pg_database where datname = current_database())
        and held.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
        and held.pid <> pg_backend_pid()
        and class.relnamespace = (select jobs.relnamespace from pg_class as jobs where jobs.oid = 'rowlock.jobs'::regclass)
    order by held.pid, whole.relname, held.mode = 'AccessExclusiveLock' desc, class.relispartition, class.relname
) as holders
order by coalesce(array_position(array['jobs', 'history', 'pauses', 'workers'], whole), 5), xact_start
limit :most::integer;
