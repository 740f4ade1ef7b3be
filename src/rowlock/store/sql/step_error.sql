-- What a step of a workflow has failed of, last.
select error ->> 'type', error ->> 'message' from rowlock.workflow_steps where workflow_id = :id::uuid and step_key = :key;
