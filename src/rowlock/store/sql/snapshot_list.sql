-- Who keeps vacuum from removing dead rows of this database: sessions, prepared transactions, replication slots; the
-- oldest first. A session does so with the snapshot it holds or the transaction it writes in; vacuum itself does not.
-- A worker of autovacuum that analyses has no state; nor has anybody for those who may not see it.
select holder.kind, holder.name, holder.pid, holder.role, holder.state, holder.transactions, holder.seconds, holder.query_start
from (
    select
        'session' as kind, coalesce(session.application_name, '') as name, session.pid, session.usename::text as role,
        coalesce(session.state, session.backend_type) as state,
        greatest(age(session.backend_xmin), age(session.backend_xid)) as transactions,
        extract(epoch from clock_timestamp() - session.xact_start)::float8 as seconds, session.query_start
    from pg_stat_activity as session
    where (session.backend_xmin is not null or session.backend_xid is not null)
        and (session.datname = current_database() or session.backend_type = 'walsender')
        and session.pid <> pg_backend_pid()
        and session.pid <> all(array(select pid from pg_stat_progress_vacuum))
    union all
    select
        'prepared transaction', gid, null, owner::text, null, age(transaction),
        extract(epoch from clock_timestamp() - prepared)::float8, null
    from pg_prepared_xacts
    where database = current_database()
    union all
    select
        'replication slot', slot_name::text, active_pid, null, case when active then 'active' else 'inactive' end, age(xmin),
        null, null
    from pg_replication_slots
    where xmin is not null
) as holder
order by holder.transactions desc, holder.seconds desc nulls last
limit :most::integer;
