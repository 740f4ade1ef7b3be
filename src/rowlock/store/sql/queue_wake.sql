-- Notify these queues if a worker is parked on them.
select count(pg_notify(rowlock.channel(queue), '')) from rowlock.parked where queue = any(:queues::text[]);
