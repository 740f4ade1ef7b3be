-- Put ended jobs back among the live ones: ready now, under their old ids, with all their attempts before them. One that was
-- cancelled before its time is due at that time.
-- Decides by the rows it locks. A key is taken again, or is still its job's for a period, which is over with that; a job whose
-- key another one holds stays where it is. Keys are taken in the order in which enqueue takes them, so that the two cannot
-- deadlock; of two jobs with one key the newer gets it.
-- A workflow goes on from the step that has failed (rowlock.resumed), with the signals that it was sent; whoever claims it sees
-- by its wakes that there is something to load. Nobody's child any more: its parent was told how it had ended.
-- Only the partitions between two days are opened.
with mine as materialized (
    select ended.*
    from rowlock.history as ended
    where ended.id = any(:ids::uuid[])
        and ended.state = any(:states::text[])
        and ended.expires_on between :first_day::date and :last_day::date
    order by ended.id
    for update skip locked
),
kept as (
    update rowlock.keys set until = null
    where key = any(array(select key from mine where key is not null)) and job = any(array(select id from mine))
    returning job
),
taken as (
    insert into rowlock.keys (key, task, job)
    select key, task, id from mine where key is not null order by convert_to(key, 'utf8'), id desc
    on conflict (key) do nothing
    returning job
),
back as (
    insert into rowlock.jobs (
        id, queue, task, priority, claims, attempts, run_at, created_at, started_at, worker, args, key, tags, errors,
        version, wakes, workflow_state
    )
    select
        id, queue, task, priority, claims, attempts,
        case state when 'cancelled' then greatest(run_at, rowlock.now()) else rowlock.now() end,
        created_at, started_at, worker, args, key, tags, errors, version, (version is not null)::integer, workflow_state
    from mine
    where key is null or id = any(array(select job from taken)) or id = any(array(select job from kept))
    on conflict (id) do nothing
    returning id, queue
),
remembered as (
    insert into rowlock.steps
    select step.*
    from mine
    cross join lateral rowlock.resumed(mine.id, mine.steps, mine.state = 'succeeded') as step
    where mine.id = any(array(select id from back)) and mine.version is not null
),
sent as (
    insert into rowlock.signals (id, job, number, name, payload, key, sent_at, taken_at)
    select stored.id, mine.id, stored.number, stored.name, one -> 'payload', stored.key, stored.sent_at, stored.taken_at
    from mine
    cross join lateral json_array_elements(mine.steps -> 'signals') as one
    cross join lateral json_to_record(one) as stored (
        id uuid, number integer, name text, key text, sent_at timestamptz, taken_at timestamptz
    )
    where mine.id = any(array(select id from back)) and mine.version is not null
),
gone as (
    delete from rowlock.history
    where id = any(array(select id from back)) and expires_on between :first_day::date and :last_day::date
),
logged as (
    insert into rowlock.events (kind, job, actor, details)
    select
        'retried', id, :actor,
        json_strip_nulls(json_build_object(
            'task', task, 'queue', queue, 'why', :why, 'state', state, 'reason', reason, 'failures', failures
        ))
    from mine
    where id = any(array(select id from back))
)
select
    count(*)::integer as changed,
    (
        select count(rowlock.notify(rowlock.channel(parked.queue), 'below'))
        from rowlock.parked
        where parked.queue = any(array(select queue from back))
    ) as woken
from back;
