-- Renew a lease that has not run out. No row: it has, others may have rescued the jobs, and this worker must stop them.
update rowlock.workers
set lease = rowlock.now() + :lease::interval
where id = :worker::uuid and lease > rowlock.now()
returning id;
