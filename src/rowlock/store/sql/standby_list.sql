-- The standbys that follow this server, and how commits wait for each: sync, quorum, potential, async; null is not ours to see.
select coalesce(application_name, ''), sync_state from pg_stat_replication order by 1;
