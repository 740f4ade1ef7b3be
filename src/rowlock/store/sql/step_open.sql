-- What a workflow waits for: its steps that are open, children last, and at most so many.
select name, step_key, kind, state, attempts, until, child, started_at
from rowlock.workflow_steps
where workflow_id = :id::uuid and state in ('open', 'retrying')
order by (kind = 'child'), until nulls last, started_at, step_key
limit :most::integer;
