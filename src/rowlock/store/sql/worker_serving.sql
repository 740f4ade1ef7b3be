-- Those of these queues that live workers but this one look into.
select distinct wanted.name
from unnest(:queues::text[]) as wanted (name)
join rowlock.workers as worker on wanted.name = any(worker.queues)
where worker.lease > rowlock.now() and worker.id <> :but::uuid;
