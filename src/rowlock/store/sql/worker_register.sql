-- Enter this worker process, under a lease; each start is a new incarnation with a new id.
-- Returns the database's time, and for how many seconds nobody has looked for dead workers; null if nobody ever has.
-- Said twice, because its reply was lost, it enters once, and the lease is as fresh as if it had been said once.
insert into rowlock.workers (id, host, pid, queues, slots, tasks, schedules, version, started_at, lease, lasts, restarts, fault)
values (
    :worker::uuid, :host, :pid::integer, :queues::text[], :slots::integer, :tasks::text[], :schedules::text[], :version,
    rowlock.now(), rowlock.now() + :lease::interval, :lease::interval, :restarts::integer, :fault
)
on conflict (id) do update set lease = rowlock.now() + excluded.lasts
returning
    extract(epoch from rowlock.now())::float8,
    (select extract(epoch from rowlock.now()) - last_value / 1000.0 from rowlock.looked_at where last_value > 1)::float8;
