-- Which of these attempts still own their jobs: what a settle skipped was then only locked by someone else.
select attempt.token
from unnest(:ids::uuid[], :tokens::uuid[]) as attempt (id, token)
cross join lateral (
    select from rowlock.jobs as job where job.id = attempt.id and job.token = attempt.token limit 1
) as job;
