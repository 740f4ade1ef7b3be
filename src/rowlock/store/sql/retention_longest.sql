-- The longest time for which any queue's settings keep an ended job, in days.
select coalesce(max(ceil(extract(epoch from keep) / 86400)), 0)::integer
from rowlock.queues
cross join unnest(array[keep_succeeded, keep_failed, keep_cancelled]) as kept (keep);
