-- Make a job that goes on from a step of another one: with its arguments and version, or others, and what it remembers of
-- before that step. That is, of the step's own branch, what the code called before it; of the branches around it, what was
-- started before it had ended; of others, those that were begun before it had ended, whole. What was open, retrying or undone
-- is left out: of a workflow that was undone nothing stands any more, and its fork starts over. So is what steps were given:
-- with other arguments, or a key made of its own id, the code calls them otherwise.
-- It has no key, no parent and no signals: those are the other's. Whoever claims it sees by its wakes that it has steps to load.
-- Said again, it finds that it was made.
with past as materialized (
    select job.queue, job.task, job.priority, job.args, job.tags, job.version, null::json as steps, true as live
    from rowlock.jobs as job
    where job.id = :id::uuid
    union all
    select ended.queue, ended.task, ended.priority, ended.args, ended.tags, ended.version, ended.steps, false
    from rowlock.history as ended
    where ended.id = :id::uuid
),
records as materialized (
    select step.*, rowlock.branch(step.key) as branch,
        min(step.started_at) over (partition by rowlock.branch(step.key)) as began
    from (
        select step.* from rowlock.steps as step where step.job = :id::uuid and exists (select from past where live)
        union all
        select step.* from past cross join lateral rowlock.unfolded(:id::uuid, past.steps) as step where not past.live
    ) as step
),
origin as materialized (
    select key, branch, position, coalesce(ended_at, 'infinity') as ended_at from records where key = :step
),
kept as materialized (
    select record.*
    from records as record
    cross join origin
    where record.state in ('done', 'failed')
        and record.kind not in ('failure', 'undo')
        and record.key <> origin.key
        and (
            record.kind = 'start'
            or case
                when exists (select from records as other where other.kind = 'undo' and other.state = 'done') then false
                when record.branch = origin.branch then record.position < origin.position
                when starts_with(origin.branch, record.branch) then record.started_at < origin.ended_at
                else record.began < origin.ended_at
            end
        )
),
made as (
    insert into rowlock.jobs (
        id, queue, task, priority, attempts, run_at, created_at, args, tags, version, wakes, workflow_state
    )
    select
        :new_id::uuid, queue, task, priority, 1, rowlock.now(), rowlock.now(), coalesce(:args::json, args), tags,
        coalesce(:version::integer, version), 1, (select kept.value from kept where kept.kind = 'start')
    from past
    where exists (select from origin) and not exists (select from rowlock.history as ended where ended.id = :new_id::uuid)
    on conflict (id) do nothing
    returning id, queue, task, version
),
remembered as (
    insert into rowlock.steps (
        job, key, position, kind, state, input, value, error, attempts, until, child, form, started_at, ended_at
    )
    select
        made.id, key, position, kind, state, null, value, error, attempts, until, child, form, started_at, ended_at
    from made
    cross join kept
),
logged as (
    insert into rowlock.events (kind, job, actor, details)
    select
        'forked', event.job, :actor,
        json_strip_nulls(json_build_object(
            'task', made.task, 'queue', made.queue, 'why', :why, 'step', :step, 'version', made.version, 'from', event.origin,
            'into', event.fork
        ))
    from made
    cross join lateral (values (made.id, :id::uuid, null::uuid), (:id::uuid, null::uuid, made.id)) as event (job, origin, fork)
)
select
    task, coalesce(:version::integer, version) as version, queue,
    (
        select count(rowlock.notify(rowlock.channel(parked.queue), ''))
        from rowlock.parked
        where parked.queue = any(array(select made.queue from made))
    ) as woken
from past;
