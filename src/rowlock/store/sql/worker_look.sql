-- Look for workers that are dead: those whose lease has run out, and those that have lost the lock which shows that they live.
-- A missing lock alone is a suspicion, because a connection may break and come back: :suspected are the workers that this
-- sweeper found without it at its last look too, and only they lose their lease now. Rows from before the server was last
-- started count for nothing: those locks went with it. The locks are tried, not read: pg_locks would be built for every look.
-- A lease that lasts too long, because the clock was set back, is cut to its proper length.
with clamped as (
    update rowlock.workers set lease = rowlock.now() + lasts where lease > rowlock.now() + 2 * lasts
),
alive as materialized (
    select worker.id
    from rowlock.present
    cross join lateral (
        select worker.id
        from rowlock.workers as worker
        where worker.id = present.worker and worker.lease > rowlock.now()
    ) as worker
    where present.worker <> :worker::uuid and present.server = pg_postmaster_start_time()
),
suspects as materialized (
    select id
    from alive
    where pg_try_advisory_xact_lock_shared(hashtextextended('rowlock.present ' || id, 0))
),
cut as (
    update rowlock.workers
    set lease = least(started_at, rowlock.now())  -- a renewal that is under way then finds it over, too
    where id = any(array(select id from suspects where id = any(:suspected::uuid[]))) and lease > rowlock.now()
    returning host || ':' || pid as name
)
select
    exists (select from rowlock.workers where lease <= rowlock.now()) as dead,
    array(select id::text from suspects) as suspects,
    array(select name from cut) as cut;
