-- The pauses that hold now.
select kind, name, until, reason, actor, at
from rowlock.pauses
where coalesce(until > rowlock.now(), true)
order by kind, name;
