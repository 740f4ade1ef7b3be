-- Let only one session at a time make partitions in this schema, until its transaction ends.
select name from rowlock.duties where name = 'partitions' for update;
