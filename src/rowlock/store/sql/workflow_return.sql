-- End attempts of workflows but not their jobs: parked, handed back, snoozed, or waiting for code or the end of a pause.
-- Looked up, locked and written as in job_return. A workflow parks only if no more wakes have come than its attempt has seen, by
-- what stands on its own row: else it is ready at once. With a step that is due some time, it is ready then; else it waits.
-- `wakes_at` says on the row that it is parked: where only a time wakes it, no number of wakes is enough.
-- One that somebody has asked to cancel comes back at once, to be undone, unless that is what it is doing.
-- One that waits for code because of a fault has its error, and the time when workflow_unblock makes it ready again.
with sent as materialized (
    select
        :ids::uuid[] as ids, :tokens::uuid[] as tokens, :delays::interval[] as delays, :failures::text[] as failures,
        :waits_for::text[] as waits_for, :reasons::text[] as reasons, :parked::boolean[] as parked, :wakes_at::integer[] as wakes_at,
        :since::timestamptz[] as since, :undoing::boolean[] as undoing, :told::text[] as told
),
mine as materialized (
    select
        job.id, job.queue, attempt.*,
        case
            when job.cancel_at is not null and not attempt.undoing then 'back'
            when attempt.parked and job.wakes >= attempt.wakes_at then 'back'
            when attempt.parked and attempt.due is not null then 'timed'
            when attempt.waits_for is not null then 'waiting'
            when attempt.delay is not null then 'delayed'
            else 'kept'
        end as becomes
    from (
        select
            attempt.*,
            case when attempt.parked then (
                select min(step.until) from rowlock.steps as step
                where step.job = attempt.job and step.state in ('open', 'retrying')
                    and step.until > coalesce(attempt.since, '-infinity')
            ) end as due
        from sent
        cross join unnest(
            sent.ids, sent.tokens, sent.delays, sent.failures, sent.waits_for, sent.reasons, sent.parked, sent.wakes_at,
            sent.since, sent.undoing, sent.told
        ) as attempt (job, token, delay, failure, waits_for, reason, parked, wakes_at, since, undoing, told)
    ) as attempt
    cross join lateral (
        select job.id, job.queue, job.cancel_at, job.wakes
        from rowlock.jobs as job
        where job.id = attempt.job and job.token = attempt.token
        for update skip locked
    ) as job
),
written as materialized (
    select
        array_agg(token) as tokens, array_agg(becomes) as becomes, array_agg(waits_for) as waits_for,
        array_agg(reason) as reasons, array_agg(failure) as failures, array_agg(parked) as parks,
        array_agg(wakes_at) as wakes_at, array_agg(told) as told,
        array_agg(case becomes
            when 'back' then rowlock.now() when 'timed' then due when 'delayed' then rowlock.now() + delay
            when 'waiting' then rowlock.now() + delay
        end) as run_at
    from mine
),
returned as (
    update rowlock.jobs
    set state = case
            when (select becomes from written)[array_position((select tokens from written), token)] = 'waiting' then 'waiting'
            else 'ready'
        end,
        waits_for = case
            when (select becomes from written)[array_position((select tokens from written), token)] = 'waiting'
                then (select waits_for from written)[array_position((select tokens from written), token)]
        end,
        reason = (select reasons from written)[array_position((select tokens from written), token)],
        run_at = coalesce((select run_at from written)[array_position((select tokens from written), token)], run_at),
        failures = failures
            + ((select failures from written)[array_position((select tokens from written), token)] is not null)::integer,
        errors = rowlock.add_error(
            errors, (select failures from written)[array_position((select tokens from written), token)], claims, worker,
            started_at
        ),
        wakes_at = case
            when (select becomes from written)[array_position((select tokens from written), token)] = 'waiting'
                then (select wakes_at from written)[array_position((select tokens from written), token)]
            when (select becomes from written)[array_position((select tokens from written), token)] = 'timed' then coalesce(
                (select wakes_at from written)[array_position((select tokens from written), token)], 2147483647
            )
        end,
        workflow_state = coalesce(
            (select told from written)[array_position((select tokens from written), token)]::json, workflow_state
        ),
        -- What has begun is worth going on with; and what parks was not what workers died of.
        expires_at = null,
        crashes = case
            when (select parks from written)[array_position((select tokens from written), token)] then 0 else crashes
        end,
        token = null
    where id = any(array(select id from mine))
)
select
    token,
    (
        select count(rowlock.notify(rowlock.channel(parked.queue), 'below'))
        from rowlock.parked
        where parked.queue = any(array(select back.queue from mine as back where becomes in ('back', 'kept')))
    ) as woken
from mine;
