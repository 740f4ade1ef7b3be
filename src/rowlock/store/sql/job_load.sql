-- Insert many new jobs without keys.
copy rowlock.jobs (id, queue, task, priority, attempts, run_at, created_at, expires_at, args, tags, version) from stdin;
