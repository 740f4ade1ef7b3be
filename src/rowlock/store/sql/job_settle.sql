-- End attempts for good: each job leaves jobs for history, and its key is free, unless it succeeded and its period lasts.
-- Every row is looked up by the id and the token of one attempt together: a stale attempt finds nothing, whatever other
-- tokens travel in the same batch. The lateral look-up can only be a nested loop over the primary key, so no plan made for
-- an empty table can turn it into n². Rows come in id order, so two settlers cannot deadlock; a row that someone else has
-- locked is skipped, so one user's open transaction cannot hold up the other jobs of the batch.
-- A job that somebody has asked to cancel meanwhile ends as cancelled, whatever its attempt came to; the returned row says so.
-- Listeners for these jobs' ends are notified; where nobody waits, nobody is.
-- The arrays are read in a CTE of their own: written into unnest, the planner reads them too, a fifth of the whole time.
with sent as materialized (
    select
        :ids::uuid[] as ids, :tokens::uuid[] as tokens, :outcomes::text[] as outcomes, :results::text[] as results,
        :reasons::text[] as reasons, :failures::text[] as failures, :keeps::interval[] as keeps
),
mine as materialized (
    select job.*, attempt.outcome, attempt.result, attempt.why, attempt.failure, attempt.keep
    from sent
    cross join unnest(
        sent.ids, sent.tokens, sent.outcomes, sent.results, sent.reasons, sent.failures, sent.keeps
    ) as attempt (id, token, outcome, result, why, failure, keep)
    cross join lateral (
        select job.*
        from rowlock.jobs as job
        where job.id = attempt.id and job.token = attempt.token
        for update skip locked
    ) as job
),
gone as (
    delete from rowlock.jobs where id = any(array(select id from mine))
),
freed as (
    delete from rowlock.keys
    where key = any(array(select key from mine where key is not null)) and job = any(array(select id from mine))
        and (
            coalesce(until <= rowlock.now(), true)
            or job = any(array(select id from mine where outcome <> 'succeeded' or cancel_at is not null))
        )
),
kept as (
    insert into rowlock.history (
        {copied}, crashes, failures, errors, ended_at, state, result, reason, expires_on
    )
    select
        {copied}, crashes,
        failures + (failure is not null)::integer, rowlock.add_error(errors, failure, claims, worker, started_at),
        rowlock.now(),
        case when cancel_at is null then outcome else 'cancelled' end,
        case when cancel_at is null then result::json end,
        case when cancel_at is null then why else 'asked' end,
        ((rowlock.now() + case
            when cancel_at is null then keep
            else coalesce(
                (select asked.keep_cancelled from rowlock.queues as asked where asked.name = mine.queue), :cancelled::interval
            )
        end) at time zone 'UTC')::date
    from mine
    where keep is not null or cancel_at is not null
)
select
    token, cancel_at is not null as cancelled,
    (
        select count(rowlock.notify('rowlock:' || waiter.listener, ''))
        from rowlock.waiters as waiter
        where waiter.job = any(array(select id from mine))
    ) as told
from mine;
