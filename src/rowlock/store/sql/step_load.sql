-- What workflows remember, for attempts that begin.
select
    job, key, position, kind, state, input::text, value::text, error::text, attempts,
    coalesce(until <= rowlock.now(), false) as due, extract(epoch from until)::float8 as until,
    extract(epoch from ended_at)::float8 as ended_at, child, rowlock.now()
from rowlock.steps
where job = any(:ids::uuid[])
order by job, started_at, key;
