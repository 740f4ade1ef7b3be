-- Every job that has not ended, in the order in which they were made; the columns are those of a job's record.
-- JSON as text, whatever the caller's connection makes of json.
select
    id, task, queue, state, priority, failures, crashes, claims, attempts, run_at, created_at, started_at,
    null::timestamptz as ended_at, expires_at, cancel_at, worker, key, tags, waits_for, reason, args::text, null as result,
    array_to_json(errors)::text as errors, progress::text, version, parent, workflow_state::text
from rowlock.jobs
order by id;
