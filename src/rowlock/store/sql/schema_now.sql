-- The database's time, in the one form that does not depend on the session's settings.
select to_char(rowlock.now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"');
