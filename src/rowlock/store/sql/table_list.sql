-- Our tables, and the parts of history and events: how they are stored, how many rows live and are dead, when vacuum last
-- came by, and what they and their indexes take. After a crash the counts start over: then the estimate is nearer.
select
    class.relname::text, class.relispartition, coalesce(pg_get_expr(class.relpartbound, class.oid) = 'DEFAULT', false),
    class.relpersistence = 'u', coalesce(class.reloptions, '{}'),
    greatest(class.reltuples::bigint, pg_stat_get_live_tuples(class.oid)), pg_stat_get_dead_tuples(class.oid),
    greatest(pg_stat_get_last_vacuum_time(class.oid), pg_stat_get_last_autovacuum_time(class.oid)),
    pg_table_size(class.oid), pg_indexes_size(class.oid),
    (
        select sum(width.avg_width)::integer
        from pg_stats as width
        where width.tablename = class.relname and width.schemaname = space.nspname
    )
from pg_class as class
join pg_namespace as space on space.oid = class.relnamespace
where class.relkind = 'r' and class.relnamespace = (
    select migrations.relnamespace from pg_class as migrations where migrations.oid = 'rowlock.migrations'::regclass
)
order by class.relname;
