-- The database's time.
select rowlock.now()::text;
