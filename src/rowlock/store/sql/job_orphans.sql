-- List up to :limit running jobs whose worker has no fresh lease, oldest first, but for those with a token in :without.
-- Suspects come last: whether one was among the jobs of a worker decides who gets the crash. Nothing is found by a worker whose own
-- lease is over by the same clock: that was put forward, or its machine slept.
-- By worker, over the index of what each holds. Jobs whose worker is not on the books at all are looked for with :lost only:
-- that walks every running job.
with me as materialized (
    select from rowlock.workers where id = :worker::uuid and lease > rowlock.now()
),
found as materialized (
    select job.id, job.token, job.crashes
    from (
        select id from rowlock.workers where lease <= rowlock.now() and (:worker is null or exists (select from me))
    ) as dead
    cross join lateral (
        select id, token, crashes
        from rowlock.jobs
        where state = 'running' and worker = dead.id and token <> all(:without::uuid[])
        order by crashes >= :suspect::integer, id
        limit :limit::integer
    ) as job
    union all
    select id, token, crashes
    from rowlock.jobs
    where :lost::boolean
        and (:worker is null or exists (select from me))
        and state = 'running'
        and token <> all(:without::uuid[])
        and not exists (select from rowlock.workers where workers.id = jobs.worker)
)
select id, token from found order by crashes >= :suspect::integer, id limit :limit::integer;
