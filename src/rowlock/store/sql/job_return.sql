-- End attempts but not their jobs: ready again after a delay (retried, snoozed, handed back), or waiting for code.
-- Looked up and locked as in job_settle; what to write is found by the row's token in the arrays as sent, because joining
-- jobs to them can be planned as n² over the whole table. Only a failure spends an attempt. A job without a delay keeps its
-- run_at and with it its place, which may lie below other claims' floors: their workers are told to look there.
-- A job that somebody has asked to cancel does not come back: it is passed over, for its worker to settle.
with sent as materialized (
    select
        :ids::uuid[] as ids, :tokens::uuid[] as tokens, :delays::interval[] as delays,
        :failures::text[] as failures, :waits_for::text[] as waits_for, :reasons::text[] as reasons
),
mine as materialized (
    select job.id, job.queue, attempt.token, attempt.delay, attempt.waits_for
    from sent
    cross join unnest(sent.ids, sent.tokens, sent.delays, sent.waits_for) as attempt (id, token, delay, waits_for)
    cross join lateral (
        select job.id, job.queue
        from rowlock.jobs as job
        where job.id = attempt.id and job.token = attempt.token and job.cancel_at is null
        for update skip locked
    ) as job
),
returned as (
    update rowlock.jobs
    set state = case
            when (select waits_for from sent)[array_position((select tokens from sent), token)] is null then 'ready'
            else 'waiting'
        end,
        waits_for = (select waits_for from sent)[array_position((select tokens from sent), token)],
        reason = (select reasons from sent)[array_position((select tokens from sent), token)],
        run_at = coalesce(
            rowlock.now() + (select delays from sent)[array_position((select tokens from sent), token)],
            run_at
        ),
        failures = failures
            + ((select failures from sent)[array_position((select tokens from sent), token)] is not null)::integer,
        errors = rowlock.add_error(
            errors, (select failures from sent)[array_position((select tokens from sent), token)], claims, worker, started_at
        ),
        token = null
    where id = any(array(select id from mine))
)
select
    token,
    (
        select count(rowlock.notify(rowlock.channel(parked.queue), 'below'))
        from rowlock.parked
        where parked.queue = any(array(select back.queue from mine as back where waits_for is null and delay is null))
    ) as woken
from mine;
