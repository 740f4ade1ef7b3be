-- Renew a lease, if nobody has taken its worker for dead, and say whether its event loop is blocked.
-- Returns the database's time, the schema's version and the oldest code that can use it: it may have been migrated meanwhile.
-- No row: others may have rescued the jobs, and this worker must stop them. They mark it as dead (job_rescue, worker_look). A lease
-- that has run out without that is renewed: a worker does not ask for it unless its own clock says that it holds, so the database's
-- clock was put forward. No time can be the mark: with the clock set back, every lease is over before its worker began.
-- It reads no job: under a held snapshot that costs more from minute to minute, and a lease must not wait for it.
update rowlock.workers
set lease = rowlock.now() + lasts, blocked = :blocked::float8, blocked_by = :blocked_by
where id = :worker::uuid and not dead
returning
    extract(epoch from rowlock.now())::float8,
    (select version from rowlock.migrations order by version desc limit 1),
    (select compatible from rowlock.migrations order by version desc limit 1);
