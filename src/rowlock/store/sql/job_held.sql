-- Which of these attempts still own their jobs, and which of those jobs somebody has asked to cancel.
-- What a settle skipped was then only locked by someone else; what a return passed over is to be settled.
select attempt.token, job.cancel_at is not null as cancelling
from unnest(:ids::uuid[], :tokens::uuid[]) as attempt (id, token)
cross join lateral (
    select job.cancel_at from rowlock.jobs as job where job.id = attempt.id and job.token = attempt.token limit 1
) as job;
