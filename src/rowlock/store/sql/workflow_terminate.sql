-- End a workflow as cancelled without undo; returns what became of it, and its children that have not ended.
select answer, children::text[] as children from rowlock.terminate(:id::uuid, :actor, :why, :keep::interval);
