-- The signals that a live workflow waits for, each with its form: the columns of a step in a timeline, as in step_list.
select
    step_key, name, kind, state, attempts, until, child, started_at, ended_at, position, null::text as input,
    null::text as result, null::text as error, form::text
from rowlock.workflow_steps
where workflow_id = :id::uuid and kind = 'signal' and state = 'open'
order by started_at, position, step_key
limit :most::integer;
