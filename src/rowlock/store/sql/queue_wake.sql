-- Notify these queues if a worker is parked on them.
select count(rowlock.notify(rowlock.channel(queue), '')) from rowlock.parked where queue = any(:queues::text[]);
