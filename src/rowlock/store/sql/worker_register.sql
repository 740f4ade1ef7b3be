-- Enter this worker process, under a lease; each start is a new incarnation with a new id. Answers the database's time.
insert into rowlock.workers (id, host, pid, queues, slots, tasks, version, started_at, lease)
values (
    :worker::uuid, :host, :pid::integer, :queues::text[], :slots::integer, :tasks::text[], :version,
    rowlock.now(), rowlock.now() + :lease::interval
)
returning extract(epoch from started_at)::float8;
