-- Begin a workflow again with a fresh history, by the attempt that holds it: what it was is forgotten but for its signals.
-- The record `start` keeps what is carried over, for every attempt to begin with.
with mine as materialized (
    select id, queue, token from rowlock.jobs where id = :id::uuid and token = :token::uuid for update skip locked
),
forgotten as (
    delete from rowlock.steps where job = any(array(select id from mine)) and key <> 'start'
),
begun as (
    insert into rowlock.steps as step (job, key, position, kind, state, value, attempts, started_at, ended_at)
    select id, 'start', 0, 'start', 'done', :state::json, 0, rowlock.now(), rowlock.now() from mine
    on conflict (job, key) do update
    set value = excluded.value, attempts = step.attempts + 1, started_at = excluded.started_at, ended_at = excluded.ended_at
),
returned as (
    update rowlock.jobs
    set args = :args::json, version = :version::integer, workflow_state = :state::json,
        state = 'ready', run_at = rowlock.now(), token = null, wakes_at = null, expires_at = null
    where id = any(array(select id from mine))
)
select
    token,
    (
        select count(rowlock.notify(rowlock.channel(parked.queue), ''))
        from rowlock.parked
        where parked.queue = any(array(select queue from mine))
    ) as woken
from mine;
