-- Look for workers that are dead: those whose lease has run out, and those that have lost the lock which shows that they live.
-- One worker looks for the fleet: the others find that somebody has looked less than :pause milliseconds ago, and read nothing
-- more. One whose own lease is over by the same clock finds nothing, either.
-- A missing lock alone is a suspicion, because a connection may break and come back: only a second look that finds it missing,
-- whoever takes it, ends the lease. Rows from before the server was last started count for nothing: those locks went with it.
-- The locks are tried, not read: pg_locks would be built for every look. Tried first: `workers` is full of dead rows under a
-- held snapshot, and read only for those whose lock is missing, or whose lease has run out since shortly before the last look.
-- A lease that lasts too long, because the clock was set back, is cut to its proper length; that of a worker which has been taken
-- for dead, to now.
with clock as materialized (
    select (extract(epoch from rowlock.now()) * 1000)::bigint as now, last_value as before from rowlock.looked_at
),
turn as materialized (
    select setval('rowlock.looked_at', greatest(1, now)), least(before, now) as before
    from clock
    where now - before not between 0 and :pause::bigint
        and exists (select from rowlock.workers where id = :worker::uuid and lease > rowlock.now())
),
clamped as (
    update rowlock.workers
    set lease = case when dead then rowlock.now() else rowlock.now() + lasts end
    where exists (select from turn) and lease > rowlock.now() and (dead or lease > rowlock.now() + 2 * lasts)
),
others as materialized (
    select worker, suspected_at
    from rowlock.present
    where exists (select from turn) and worker <> :worker::uuid and server = pg_postmaster_start_time()
),
suspects as materialized (
    select worker, suspected_at
    from others
    where pg_try_advisory_xact_lock_shared(hashtextextended('rowlock.present ' || worker, 0))
),
suspected as (
    update rowlock.present
    set suspected_at = rowlock.now()
    where worker = any(array(select worker from suspects where suspected_at is null))
),
cut as (
    update rowlock.workers
    set dead = true, lease = rowlock.now()  -- a renewal that is under way then finds the mark
    where id = any(array(select worker from suspects where suspected_at <= rowlock.now() - :pause::bigint * interval '1 millisecond'))
        and lease > rowlock.now()
    returning host || ':' || pid as name
)
select
    exists (
        select from rowlock.workers
        where lease > to_timestamp((select before from turn) / 1000.0) - interval '10 seconds' and lease <= rowlock.now()
    ) as dead,
    array(select name from cut) as cut;
