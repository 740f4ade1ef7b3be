-- Renew a lease, if nobody has taken its worker for dead, and say whether its event loop is blocked.
-- Returns the database's time, the schema's version and the oldest code that can use it: it may have been migrated meanwhile.
-- No row: others may have rescued the jobs, and this worker must stop them. They mark it as dead (job_rescue, worker_look). A lease
-- that has run out without that is renewed: a worker does not ask for it unless its own clock says that it holds, so the database's
-- clock was put forward. No time can be the mark: with the clock set back, every lease is over before its worker began.
-- Its commit waits for no synchronous standby: while one hangs, all workers would lose their leases, though nothing is wrong with
-- them. `local` is said for this transaction only, in its own statement, so that it costs no round trip. Not `off`: a lease that its
-- worker trusts must not be shorter after a crash of the server. Should a standby take over that has not heard of it, the lease ends
-- early; then its worker finds itself taken for dead, and lets go.
-- It reads no job: under a held snapshot that costs more from minute to minute, and a lease must not wait for it.
update rowlock.workers
set lease = rowlock.now() + lasts, blocked = :blocked::float8, blocked_by = :blocked_by
where id = :worker::uuid and not dead
returning
    extract(epoch from rowlock.now())::float8,
    (select version from rowlock.migrations order by version desc limit 1),
    (select compatible from rowlock.migrations order by version desc limit 1),
    pg_catalog.set_config('synchronous_commit', 'local', true);
