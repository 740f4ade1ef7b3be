-- One job as it is now: from jobs while it lives, else from history. One statement, so a settle in between is seen or not.
-- History is looked into only for what is not live: it has many parts, and each is opened.
with live as materialized (
    select
        {live_facts}, job.args::text, null::text as result, array_to_json(job.errors)::text as errors, job.workflow_state::text
    from rowlock.jobs as job
    where job.id = :id::uuid
),
past as (
    select
        {ended_facts}, job.args::text, job.result::text, array_to_json(job.errors)::text as errors, job.workflow_state::text
    from rowlock.history as job
    where job.id = :id::uuid and not exists (select from live)
)
select * from live
union all
select * from past;
