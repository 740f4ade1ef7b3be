-- Make ready again up to :limit workflows that wait for code because of a fault, and whose time to be tried again has come; those
-- in :without stay. Their run_at becomes now: nobody was late for the time before.
with mine as materialized (
    select job.id, job.queue
    from rowlock.jobs as job
    where job.waits_for = 'code'
        and job.version is not null
        and job.run_at > job.started_at
        and job.run_at <= rowlock.now()
        and job.id <> all(:without::uuid[])
    order by job.run_at
    limit :limit::integer
    for update skip locked
),
released as (
    update rowlock.jobs
    set state = 'ready', waits_for = null, reason = null, run_at = rowlock.now()
    where id = any(array(select id from mine))
)
select
    count(*)::integer as released,
    (
        select count(rowlock.notify(rowlock.channel(parked.queue), ''))
        from rowlock.parked
        where parked.queue = any(array(select queue from mine))
    ) as woken
from mine;
