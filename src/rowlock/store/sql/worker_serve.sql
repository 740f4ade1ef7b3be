-- A worker of all queues has found new ones, or some are gone.
update rowlock.workers set queues = :queues::text[] where id = :worker::uuid;
