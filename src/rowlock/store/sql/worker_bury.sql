-- Remove workers whose lease ran out and that hold no job any more, and what is left of workers that are not there.
with buried as (
    delete from rowlock.workers as worker
    where worker.lease <= rowlock.now()
        and not exists (select from rowlock.jobs as job where job.state = 'running' and job.worker = worker.id)
    returning worker.id
),
absent as (
    delete from rowlock.present
    where worker = any(array(select id from buried))
        or not exists (select from rowlock.workers where workers.id = present.worker)
)
delete from rowlock.parked
where worker = any(array(select id from buried))
    or not exists (select from rowlock.workers where workers.id = parked.worker);
