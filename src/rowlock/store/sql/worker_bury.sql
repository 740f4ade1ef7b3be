-- Remove workers whose lease ran out and that hold no job any more, and what is left of workers that are not there; returns
-- whether there are dead workers that hold jobs still.
with dead as materialized (
    select
        id,
        (
            select true from rowlock.jobs as job where job.state = 'running' and job.worker = workers.id limit 1
        ) is true as holds
    from rowlock.workers
    where lease <= rowlock.now()
),
buried as (
    delete from rowlock.workers
    where id = any(array(select id from dead where not holds)) and lease <= rowlock.now()
    returning id
),
absent as (
    delete from rowlock.present
    where worker = any(array(select id from buried))
        or not exists (select from rowlock.workers where workers.id = present.worker)
),
unparked as (
    delete from rowlock.parkings
    where worker = any(array(select id from buried))
        or not exists (select from rowlock.workers where workers.id = parkings.worker)
)
select exists (select from dead where holds);
