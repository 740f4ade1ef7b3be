-- Renew a lease that has not run out. No row: it has, others may have rescued the jobs, and this worker must stop them.
-- It reads no job: under a held snapshot that costs more from minute to minute, and a lease must not wait for it.
update rowlock.workers
set lease = rowlock.now() + lasts
where id = :worker::uuid and lease > rowlock.now()
returning id;
