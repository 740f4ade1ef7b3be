-- End attempts but not their jobs: ready again after a delay (retried, snoozed, handed back), or waiting for code.
-- Looked up and locked as in job_settle. What to write is found in the arrays as sent, because joining jobs to them can be
-- planned as n² over the whole table: their ids are in order, so the place of a row's is found by halves; should two attempts of
-- one job have been sent, by its token. An array that is null as a whole says so of every job.
-- Only a failure spends an attempt. A job without a delay keeps its run_at and with it its place, which may lie below other
-- claims' floors: their workers are told to look there; and of what is due again within a second, of
-- which they would learn too late.
-- A job that somebody has asked to cancel does not come back: it is passed over, for its worker to settle.
with sent as materialized (
    select
        :ids::uuid[] as ids, :tokens::uuid[] as tokens, :delays::interval[] as delays,
        :failures::text[] as failures, :waits_for::text[] as waits_for, :reasons::text[] as reasons
),
mine as materialized (
    select job.id, job.queue, attempt.token, attempt.place
    from sent
    cross join unnest(sent.ids, sent.tokens) with ordinality as attempt (id, token, place)
    cross join lateral (
        select job.id, job.queue
        from rowlock.jobs as job
        where job.id = attempt.id and job.token = attempt.token and job.cancel_at is null
        for update skip locked
    ) as job
),
returned as (
    update rowlock.jobs as job
    set (state, waits_for, reason, run_at, failures, errors) = (
        select
            case when (select waits_for from sent)[place] is null then 'ready' else 'waiting' end,
            (select waits_for from sent)[place],
            (select reasons from sent)[place],
            coalesce(rowlock.now() + (select delays from sent)[place], job.run_at),
            job.failures + ((select failures from sent)[place] is not null)::integer,
            rowlock.add_error(job.errors, (select failures from sent)[place], job.claims, job.worker, job.started_at)
        from (select width_bucket(job.id, (select ids from sent)) as last) as near
        cross join lateral (
            select case
                when (select tokens from sent)[last] = job.token then last
                else array_position((select tokens from sent), job.token)
            end as place
        ) as exact
    ),
    token = null
    where id = any(array(select id from mine))
)
select
    token,
    (
        select count(rowlock.notify(rowlock.channel(parked.queue), 'below'))
        from rowlock.parked
        where parked.queue = any(array(
            select back.queue
            from mine as back
            cross join sent
            where sent.waits_for[back.place] is null
                and coalesce(sent.delays[back.place] <= interval '1 second', true)
        ))
    ) as woken
from mine;
