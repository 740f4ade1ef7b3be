-- How many rows of jobs live, how many are dead but not removed, and when vacuum last came by.
select
    pg_stat_get_live_tuples(jobs.oid), pg_stat_get_dead_tuples(jobs.oid),
    pg_stat_get_last_vacuum_time(jobs.oid), pg_stat_get_last_autovacuum_time(jobs.oid)
from (select 'rowlock.jobs'::regclass::oid) as jobs (oid);
