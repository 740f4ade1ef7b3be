-- Write down what attempts of workflows remember, the signals that they take, and what they say of themselves.
-- Each is looked up by the id and the token of one attempt together, and locked: without a lock, or with the weaker one of a
-- foreign key, a zombie's step was committed after its job had been run again and settled. A lock that others could share would
-- let this statement wait for them, as for a step in a transaction whose connection is lost; a row that someone else has locked
-- is skipped, so that it holds up nobody else's steps.
-- What gets on is not what its workers die of, nor what a fault blocks: with each step both are counted from zero. A step that is
-- done is never written again, so sending this twice is safe.
-- The arrays are read in a CTE of their own, as in job_settle.
with sent as materialized (
    select
        :ids::uuid[] as ids, :tokens::uuid[] as tokens, :keys::text[] as keys, :positions::integer[] as positions,
        :kinds::text[] as kinds, :states::text[] as states, :inputs::text[] as inputs, :values::text[] as values,
        :errors::text[] as errors, :attempts::integer[] as attempts, :delays::interval[] as delays,
        :untils::timestamptz[] as untils, :forms::text[] as forms, :ago::interval[] as ago, :signals::uuid[] as signals, :told::text[] as told
),
mine as materialized (
    select job.id, job.crashes > 0 or job.failures > 0 as has_failed, step.*
    from sent
    cross join unnest(
        sent.ids, sent.tokens, sent.keys, sent.positions, sent.kinds, sent.states, sent.inputs, sent.values, sent.errors,
        sent.attempts, sent.delays, sent.untils, sent.forms, sent.ago, sent.signals, sent.told
    ) as step (
        job, token, key, position, kind, state, input, value, error, attempts, delay, until, form, ago, signal, told
    )
    cross join lateral (
        select job.id, job.crashes, job.failures
        from rowlock.jobs as job
        where job.id = step.job and job.token = step.token
        for no key update skip locked
    ) as job
),
written as (
    insert into rowlock.steps as step
        (job, key, position, kind, state, input, value, error, attempts, until, form, started_at, ended_at)
    select
        id, key, position, kind, state, input::json, value::json, error::json, attempts, coalesce(until, rowlock.now() + delay),
        form::json,
        rowlock.now() - ago, case when state in ('done', 'failed', 'closed') then rowlock.now() end
    from mine
    on conflict (job, key) do update
    set state = excluded.state, value = excluded.value, error = excluded.error, attempts = excluded.attempts,
        until = coalesce(excluded.until, step.until), ended_at = excluded.ended_at
    where step.state in ('open', 'retrying', 'closed')
),
taken as (
    update rowlock.signals set taken_at = rowlock.now()
    where id = any(array(select signal from mine where signal is not null))
),
told as (
    update rowlock.jobs
    set workflow_state = coalesce(
            (select told from sent)[array_position((select tokens from sent), token)]::json, workflow_state
        ),
        crashes = case when id = any(array(select id from mine where kind <> 'failure')) then 0 else crashes end,
        failures = case when id = any(array(select id from mine where kind <> 'failure')) then 0 else failures end
    where id = any(array(select id from mine where told is not null or (has_failed and kind <> 'failure')))
)
select token, rowlock.now() from mine;
