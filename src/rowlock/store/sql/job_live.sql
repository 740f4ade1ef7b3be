-- Every job that has not ended, in the order in which they were made; the columns are those of a job's record.
-- JSON as text, whatever the caller's connection makes of json.
select
    {live_facts}, job.args::text, null::text as result, array_to_json(job.errors)::text as errors, job.workflow_state::text
from rowlock.jobs as job
order by job.id;
