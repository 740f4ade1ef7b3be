-- Workflows, live or ended, as a replay needs them. JSON as text, as in job_live.
select id, workflow, version, status, key, queue, input::text, state::text
from rowlock.workflows
where id = any(:ids::uuid[]);
