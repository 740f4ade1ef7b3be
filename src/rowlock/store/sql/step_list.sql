-- What a workflow remembers, live or ended; the columns are those of a step in a timeline. JSON as text, as in job_live.
select
    step_key, name, kind, state, attempts, until, child, started_at, ended_at, position, input::text, result::text, error::text,
    form::text
from rowlock.workflow_steps
where workflow_id = :id::uuid
order by started_at, position, step_key;
