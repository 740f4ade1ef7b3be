-- Notify these queues if a worker is parked on them.
select pg_notify(rowlock.channel(queue), '')
from (select distinct queue from rowlock.parked where queue = any(:queues::text[])) as sleeping;
