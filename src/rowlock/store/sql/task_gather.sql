-- The tasks that live workers on a queue know, each once and no more than :most.
select distinct their.task
from rowlock.workers as worker
cross join unnest(worker.tasks) as their (task)
where worker.lease > rowlock.now() and :queue = any(worker.queues)
order by their.task
limit :most::integer;
