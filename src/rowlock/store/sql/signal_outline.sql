-- The signals to a live workflow that nobody has taken, as signal_list, for a role that may not read what they say.
select name, key, sent_at, null::text as payload
from rowlock.signals
where job = :id::uuid and taken_at is null
order by number;
