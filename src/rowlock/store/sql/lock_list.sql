-- Sessions that work on our tables and wait for a lock, longest first. One that waits for a row waits, in PostgreSQL's
-- books, for a transaction and not for a table: it is ours if it has locked a table of ours before.
with locks as materialized (
    select pid, relation, mode, granted, waitstart
    from pg_locks
    where database is null or database = (select oid from pg_database where datname = current_database())
),
ours as materialized (
    select class.oid from pg_class as class where class.relnamespace = (
        select jobs.relnamespace from pg_class as jobs where jobs.oid = 'rowlock.jobs'::regclass
    )
)
select
    waiting.pid, coalesce(session.application_name, ''), waiting.relation::regclass::text, waiting.mode,
    extract(epoch from clock_timestamp() - coalesce(waiting.waitstart, clock_timestamp()))::float8,
    pg_blocking_pids(waiting.pid)
from locks as waiting
left join pg_stat_get_activity(waiting.pid) as session on true
where not waiting.granted
    and waiting.pid = any(array(select pid from locks where relation = any(array(select oid from ours))))
order by waiting.waitstart
limit :most::integer;
