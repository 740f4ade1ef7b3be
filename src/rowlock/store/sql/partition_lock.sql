-- Let only one session at a time make partitions in this schema, until its transaction ends.
select pg_advisory_xact_lock(hashtextextended('rowlock.partitions', 0));
