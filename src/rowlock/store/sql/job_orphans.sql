-- List up to :limit running jobs whose worker has no fresh lease, oldest first, but for those with a token in :without.
-- By worker, over the index of what each holds. Jobs whose worker is not on the books at all are looked for with :lost only:
-- that walks every running job.
with found as materialized (
    select job.id, job.token
    from (select id from rowlock.workers where lease <= rowlock.now()) as dead
    cross join lateral (
        select id, token
        from rowlock.jobs
        where state = 'running' and worker = dead.id and token <> all(:without::uuid[])
        limit :limit::integer
    ) as job
    union all
    select id, token
    from rowlock.jobs
    where :lost::boolean
        and state = 'running'
        and token <> all(:without::uuid[])
        and not exists (select from rowlock.workers where workers.id = jobs.worker)
)
select id, token from found order by id limit :limit::integer;
