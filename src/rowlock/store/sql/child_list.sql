-- The children of a workflow that have not ended.
-- Found first, then put in order: for the order alone the primary key, and with it all jobs, may be read.
with child as materialized (
    select id, task, version, queue, state, waits_for from rowlock.jobs where parent = :id::uuid
)
select id, task, version, queue, state, waits_for from child order by id;
