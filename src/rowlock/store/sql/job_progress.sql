-- Write down how far attempts say they are.
-- Looked up and locked as in job_settle; what to write is found by the row's token, as in job_return. The commit does not
-- wait for the disk: the next word comes within a second, and the settle that ends the job does wait.
with sent as materialized (
    select :ids::uuid[] as ids, :tokens::uuid[] as tokens, :shares::float8[] as shares, :notes::text[] as notes
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
set progress = json_build_object(
    'share', (select shares from sent)[array_position((select tokens from sent), token)],
    'note', (select notes from sent)[array_position((select tokens from sent), token)],
    'at', rowlock.now()
)
where id = any(array(select id from mine))
returning token, set_config('synchronous_commit', 'off', true);
