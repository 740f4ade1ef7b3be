-- The tasks that live workers know, by name alone.
select distinct split_part(known.name, '@', 1)
from rowlock.workers as worker
cross join lateral unnest(worker.tasks) as known (name)
where worker.lease > rowlock.now();
