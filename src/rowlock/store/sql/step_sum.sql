-- How many children a workflow has begun, how many of them have not ended, and whether it has failed: then it is being undone.
select
    count(*) filter (where kind = 'child') as children, count(*) filter (where kind = 'child' and state = 'open') as open,
    coalesce(bool_or(kind = 'failure'), false) as has_failed
from rowlock.workflow_steps
where workflow_id = :id::uuid;
