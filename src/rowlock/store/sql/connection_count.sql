-- How many connections the server has, and how many it takes.
select sum(numbackends)::integer, current_setting('max_connections')::integer from pg_stat_database;
