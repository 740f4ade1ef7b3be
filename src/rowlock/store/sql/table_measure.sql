-- What our tables and the indexes of jobs take on disk, in bytes, and how many rows history has, about.
-- An estimate is made by the first analyze only, and the count of live rows is forgotten in a crash: the larger one is nearer.
select
    pg_table_size('rowlock.jobs'::regclass) as jobs,
    array(
        select class.relname::text
        from pg_index as link join pg_class as class on class.oid = link.indexrelid
        where link.indrelid = 'rowlock.jobs'::regclass
        order by class.relname
    ) as indexes,
    array(
        select pg_relation_size(class.oid)
        from pg_index as link join pg_class as class on class.oid = link.indexrelid
        where link.indrelid = 'rowlock.jobs'::regclass
        order by class.relname
    ) as index_sizes,
    (
        select coalesce(sum(pg_total_relation_size(part.inhrelid)), 0)::bigint
        from pg_inherits as part
        where part.inhparent = 'rowlock.history'::regclass
    ) as history,
    (
        select coalesce(sum(pg_total_relation_size(part.inhrelid)), 0)::bigint
        from pg_inherits as part
        where part.inhparent = 'rowlock.events'::regclass
    ) as events,
    (
        select coalesce(sum(greatest(class.reltuples, pg_stat_get_live_tuples(class.oid))), 0)::bigint
        from pg_inherits as part join pg_class as class on class.oid = part.inhrelid
        where part.inhparent = 'rowlock.history'::regclass
    ) as history_rows;
