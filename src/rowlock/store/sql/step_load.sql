-- What workflows remember, for attempts that begin.
select
    job, key, position, kind, state, input::text, value::text, error::text, attempts, coalesce(until <= rowlock.now(), false) as due, child,
    rowlock.now()
from rowlock.steps
where job = any(:ids::uuid[])
order by job, started_at, key;
