-- The server's own clock, in seconds since 1970.
select extract(epoch from clock_timestamp())::float8;
