-- What workflows remember, live or ended, as a replay needs it: the columns of step_load. JSON as text, as in job_live.
select
    workflow_id, step_key, position, kind, state, input::text, result::text, error::text, attempts,
    coalesce(until <= rowlock.now(), false) as due, extract(epoch from until)::float8 as until,
    extract(epoch from ended_at)::float8 as ended_at, child
from rowlock.workflow_steps
where workflow_id = any(:ids::uuid[])
order by workflow_id, started_at, step_key;
