-- The database's date, by which partitions are named and dropped.
select (rowlock.now() at time zone 'UTC')::date::text;
