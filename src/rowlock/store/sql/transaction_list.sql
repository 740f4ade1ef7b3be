-- Sessions that are in a transaction, the oldest first, of all databases: none of them takes its notifications before its end.
select
    session.pid, coalesce(session.application_name, ''), session.usename::text, session.datname::text, session.state,
    extract(epoch from clock_timestamp() - session.xact_start)::float8
from pg_stat_activity as session
where session.xact_start is not null and session.backend_type = 'client backend' and session.pid <> pg_backend_pid()
order by session.xact_start
limit :most::integer;
