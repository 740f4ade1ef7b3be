-- Workflows, live or ended, as a replay needs them. JSON as text, as in job_live.
select id, workflow, version, state, key, queue, input::text, workflow_state::text
from rowlock.workflows
where id = any(:ids::uuid[]);
