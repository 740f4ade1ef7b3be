-- The notification channels of these queues.
select rowlock.channel(queue) from unnest(:queues::text[]) as mine (queue);
