-- What the server is: its version, whether it only follows another one, how old the oldest transaction ids are that it must
-- still tell apart (in this database, and the oldest of our tables), and how far our clock has been moved from its own.
select
    current_setting('server_version_num')::integer, pg_is_in_recovery(), age(database.datfrozenxid), mxid_age(database.datminmxid),
    (
        select max(greatest(age(class.relfrozenxid), 0))
        from pg_class as class
        where class.relkind = 'r' and class.relnamespace = (
            select migrations.relnamespace from pg_class as migrations where migrations.oid = 'rowlock.migrations'::regclass
        )
    ),
    extract(epoch from rowlock.now() - statement_timestamp())::float8
from pg_database as database
where database.datname = current_database();
