-- Mark attempts that have begun, :ages seconds ago: jobs that were claimed ahead, and have run for a while.
-- Should their worker die, it is they who may have killed it.
-- Looked up, locked and written as in job_progress, and as there the commit does not wait for the disk.
with sent as materialized (
    select :ids::uuid[] as ids, :tokens::uuid[] as tokens, :ages::float8[] as ages
),
mine as materialized (
    select job.id
    from sent
    cross join unnest(sent.ids, sent.tokens) as attempt (id, token)
    cross join lateral (
        select job.id
        from rowlock.jobs as job
        where job.id = attempt.id and job.token = attempt.token
        for update skip locked
    ) as job
)
update rowlock.jobs
set begun = true, started_at = rowlock.now() - make_interval(
    secs => (select ages from sent)[array_position((select tokens from sent), token)]
)
where id = any(array(select id from mine))
returning token, set_config('synchronous_commit', 'off', true);
