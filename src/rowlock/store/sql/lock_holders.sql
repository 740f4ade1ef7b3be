-- Sessions that hold a lock on a table of ours with which nobody can write to it, or not even read it, the longest first.
-- Asked for by names of the catalogue alone, so that it waits for none of these locks.
select
    held.pid, coalesce(session.application_name, ''), session.usename::text, session.state, class.relname::text, held.mode,
    extract(epoch from clock_timestamp() - session.xact_start)::float8 as seconds
from pg_locks as held
join pg_class as class on class.oid = held.relation
left join pg_stat_activity as session on session.pid = held.pid
where held.granted
    and held.locktype = 'relation'
    and held.database = (select oid from pg_database where datname = current_database())
    and held.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
    and held.pid <> pg_backend_pid()
    and class.relnamespace = (select jobs.relnamespace from pg_class as jobs where jobs.oid = 'rowlock.jobs'::regclass)
    and class.relname in ('jobs', 'history', 'keys', 'workers', 'steps', 'events', 'duties', 'schedules')
order by (class.relname = 'jobs') desc, session.xact_start
limit :most::integer;
