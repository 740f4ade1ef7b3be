-- The jobs that a worker holds, each with the proof of its claim.
select id, token from rowlock.jobs where state = 'running' and worker = :worker::uuid;
