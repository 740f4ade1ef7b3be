-- The tokens of the jobs that this worker holds, as the database knows it.
select token from rowlock.jobs where state = 'running' and worker = :worker::uuid;
