-- The children of a workflow that have not ended.
select id, task, version, queue, state, waits_for from rowlock.jobs where parent = :id::uuid order by id;
