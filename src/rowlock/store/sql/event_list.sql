-- The latest events, newest first, and the worker that each is about.
-- Sorts every event that is kept: for a person's question, not for a loop over a busy fleet.
select id, kind, job, actor, details ->> 'worker' as worker
from rowlock.events
order by at desc, id desc
limit :limit::integer;
