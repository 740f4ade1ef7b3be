-- Ask to cancel children whose workflow ends, or forgets them; returns those that somebody else has locked, and nobody marked.
-- None of them ends here: marked, and ready at once, they end by the worker that claims them, or that runs them and is told.
with mine as materialized (
    select job.id, job.state, job.queue, job.task, job.worker, job.parent
    from rowlock.jobs as job
    where job.id = any(:ids::uuid[]) and job.cancel_at is null
    order by job.id
    for update skip locked
),
marked as (
    update rowlock.jobs set cancel_at = rowlock.now() where id = any(array(select id from mine where state = 'running'))
),
called as (
    update rowlock.jobs
    set cancel_at = rowlock.now(), state = 'ready', waits_for = null, reason = null, wakes_at = null,
        run_at = case state when 'ready' then least(run_at, rowlock.now()) else rowlock.now() end
    where id = any(array(select id from mine where state <> 'running'))
),
logged as (
    insert into rowlock.events (kind, job, actor, details)
    select
        'abandoned', id, :actor,
        json_strip_nulls(json_build_object('task', task, 'queue', queue, 'state', state, 'workflow', parent))
    from mine
)
select
    array(
        select job.id::text
        from rowlock.jobs as job
        where job.id = any(:ids::uuid[]) and job.cancel_at is null and job.id <> all(array(select mine.id from mine))
    ) as locked,
    (
        select count(rowlock.notify(rowlock.channel(parked.queue), ''))
        from rowlock.parked
        where parked.queue = any(array(select called.queue from mine as called where state <> 'running'))
    ) as woken,
    (
        select count(rowlock.notify('rowlock:' || asked.worker, 'cancel'))
        from (select distinct worker from mine where state = 'running') as asked
    ) as asked;
