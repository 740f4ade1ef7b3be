-- The signals to workflows that nobody has taken, in the order in which they came.
select job, id, name, payload::text, extract(epoch from sent_at)::float8
from rowlock.signals
where job = any(:ids::uuid[]) and taken_at is null
order by job, number;
