-- What a workflow has said of itself at last.
select workflow_state::text from rowlock.jobs where id = :id::uuid;
