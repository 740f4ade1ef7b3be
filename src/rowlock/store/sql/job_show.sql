-- One job as it is now: from jobs while it lives, else from history. One statement, so a settle in between is seen or not.
-- History is looked into only for what is not live: it has many parts, and each is opened.
with live as materialized (
    select
        id, task, queue, rowlock.shown_state(state, waits_for, wakes_at, run_at) as state, priority, failures, crashes,
        claims, attempts, run_at, created_at, started_at, null::timestamptz as ended_at, expires_at, cancel_at, worker, key, tags, waits_for, reason, args::text,
        null::text as result, array_to_json(errors)::text as errors, progress::text, version, parent, workflow_state::text
    from rowlock.jobs
    where id = :id::uuid
),
past as (
    select
        id, task, queue, state, priority, failures, crashes, claims, attempts, run_at, created_at, started_at,
        ended_at, null::timestamptz as expires_at, null::timestamptz as cancel_at, worker, key, tags, null as waits_for,
        reason, args::text, result::text, array_to_json(errors)::text as errors, progress::text, version, parent,
        workflow_state::text
    from rowlock.history
    where id = :id::uuid and not exists (select from live)
)
select * from live
union all
select * from past;
