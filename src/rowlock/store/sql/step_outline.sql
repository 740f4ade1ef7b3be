-- What a workflow remembers, as step_list, for a role that may not read what its steps were given and what they made of it.
select
    step_key, name, kind, state, attempts, until, child, started_at, ended_at, position, null::text as input,
    null::text as result, null::text as error, null::text as form
from rowlock.workflow_steps
where workflow_id = :id::uuid
order by started_at, position, step_key;
