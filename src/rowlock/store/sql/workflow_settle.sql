-- End workflows, and children of workflows, for good: job_settle, and what only they need.
-- A workflow takes its steps and signals with it into history, and its key stays until that row expires: to start it again by
-- the same key is to find it. A child's outcome is written into its parent's step, and counted on the parent's row as a wake,
-- which readies a parent that is parked; both by what stands on rows that are locked here.
-- A workflow that somebody has asked to cancel meanwhile, and that has something to undo, does not end: it is ready again, and
-- its next attempt undoes. One that was woken while this statement began is left for the next time.
-- Parents are locked in id order and only if nobody else has them: a child whose parent is locked is left for the next time, as
-- one that is locked itself. Who ends a workflow locks no other row but this, so there is no order to be violated.
with sent as materialized (
    select
        :ids::uuid[] as ids, :tokens::uuid[] as tokens, :outcomes::text[] as outcomes, :results::text[] as results,
        :reasons::text[] as reasons, :failures::text[] as failures, :keeps::interval[] as keeps,
        :undoable::boolean[] as undoable, :told::text[] as told
),
found as materialized (
    select job.*, attempt.outcome, attempt.result, attempt.why, attempt.failure, attempt.keep, attempt.undoable, attempt.told
    from sent
    cross join unnest(
        sent.ids, sent.tokens, sent.outcomes, sent.results, sent.reasons, sent.failures, sent.keeps, sent.undoable, sent.told
    ) as attempt (id, token, outcome, result, why, failure, keep, undoable, told)
    cross join lateral (
        select job.*
        from rowlock.jobs as job
        where job.id = attempt.id and job.token = attempt.token
        for update skip locked
    ) as job
    -- A signal, or a child's outcome, that came after this statement had begun is counted on the row as it is locked, but is not
    -- seen by what folds and deletes below: it would be left behind.
    where job.wakes = (select seen.wakes from rowlock.jobs as seen where seen.id = attempt.id)
),
parents as materialized (
    select parent.id
    from (select distinct parent as id from found where parent is not null order by parent) as wanted
    cross join lateral (
        select job.id from rowlock.jobs as job where job.id = wanted.id for update skip locked
    ) as parent
),
back as (
    update rowlock.jobs set state = 'ready', token = null, run_at = rowlock.now()
    where id = any(array(select id from found where cancel_at is not null and undoable))
    returning id, queue
),
mine as materialized (
    select
        found.*,
        case when cancel_at is null then outcome else 'cancelled' end as ends_as,
        case
            when cancel_at is null or outcome = 'cancelled' then why
            else 'asked' || coalesce(substring(why from '; could not be undone: .*'), '')
        end as because,
        case when cancel_at is null then result end as gives
    from found
    where not (cancel_at is not null and undoable)
        and (
            parent is null
            -- One that ends in this very statement would be written twice by it: then its child is for the next time, too.
            or (parent = any(array(select id from parents)) and parent <> all(array(select id from found)))
            -- Not as `not exists`: of that a plan was made which reads all jobs.
            or (select up.id from rowlock.jobs as up where up.id = found.parent) is null
        )
),
ended as materialized (
    select
        array_agg(id) as ids, array_agg(ends_as) as states, array_agg(gives) as results,
        array_agg(json_build_object('outcome', ends_as, 'reason', because, 'task', task, 'failure', failure::json)::text) as errors
    from mine
    where parent = any(array(select id from parents))
),
answered as (
    update rowlock.steps
    set state = case
            when (select states from ended)[array_position((select ids from ended), child)] = 'succeeded' then 'done'
            else 'failed'
        end,
        value = (select results from ended)[array_position((select ids from ended), child)]::json,
        error = case
            when (select states from ended)[array_position((select ids from ended), child)] <> 'succeeded'
                then (select errors from ended)[array_position((select ids from ended), child)]::json
        end,
        ended_at = rowlock.now()
    -- That it is not null must be said: of an array that may be empty PostgreSQL does not know it. And `state = 'open'`, which
    -- is the same here as that it has not ended, would let it read the index of all steps that are open.
    where child = any((select ids from ended)::uuid[]) and child is not null and ended_at is null
),
counted as materialized (
    select array_agg(id) as ids, array_agg(wakes) as wakes
    from (
        select parent as id, count(*)::integer as wakes
        from mine where parent = any(array(select id from parents)) group by parent
    ) as woken
),
woken as (
    update rowlock.jobs
    set wakes = wakes + (select wakes from counted)[array_position((select ids from counted), id)],
        state = case
            when wakes + (select wakes from counted)[array_position((select ids from counted), id)] >= wakes_at then 'ready'
            else state
        end,
        waits_for = case
            when wakes + (select wakes from counted)[array_position((select ids from counted), id)] >= wakes_at then null
            else waits_for
        end,
        run_at = case
            when wakes + (select wakes from counted)[array_position((select ids from counted), id)] >= wakes_at then rowlock.now()
            else run_at
        end,
        wakes_at = case
            when wakes + (select wakes from counted)[array_position((select ids from counted), id)] >= wakes_at then null
            else wakes_at
        end
    where id = any((select ids from counted)::uuid[])
    returning queue, state, run_at
),
gone as (
    delete from rowlock.jobs where id = any(array(select id from mine))
),
forgotten as (
    delete from rowlock.steps where job = any(array(select id from mine where version is not null))
),
unheard as (
    delete from rowlock.signals where job = any(array(select id from mine where version is not null))
),
kept_keys as (
    update rowlock.keys
    set until = rowlock.now() + coalesce((select keep from mine where mine.id = keys.job), interval '0')
    where key = any(array(select key from mine where key is not null)) and job = any(array(select id from mine))
),
kept as (
    insert into rowlock.history (
        {copied}, crashes, failures, errors, ended_at, state, result, reason, workflow_state, steps, expires_on
    )
    select
        {copied}, crashes,
        failures + (failure is not null)::integer, rowlock.add_error(errors, failure, claims, worker, started_at),
        rowlock.now(), ends_as, gives::json, because, coalesce(told::json, workflow_state),
        case when version is not null then (select folded from rowlock.folded(id) as folded) end,
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
    ) as told,
    (
        select count(rowlock.notify(rowlock.channel(parked.queue), ''))
        from rowlock.parked
        where parked.queue = any(
            array(select queue from woken where state = 'ready' and run_at <= rowlock.now() union all select queue from back)
        )
    ) as woken
from found
where id = any(array(select id from mine)) or id = any(array(select id from back));
