-- See to up to :limit keys whose periods are over, but for those in :without: those of ended jobs are free, those of live ones
-- have no period any more.
-- By id, each for itself: as `exists` it may be a join, which on the plan of an empty table reads all jobs.
-- So no sweep meets one twice. It waits for nobody: who has locked a key sees to it.
with past as materialized (
    select held.key, (select true from rowlock.jobs as job where job.id = held.job limit 1) is true as live
    from rowlock.keys as held
    where held.until <= rowlock.now() and held.key <> all(:without::text[])
    order by held.until
    limit :limit::integer
    for update skip locked
),
freed as (
    delete from rowlock.keys
    where key = any(array(select key from past where not live))
),
plain as (
    update rowlock.keys set until = null
    where key = any(array(select key from past where live))
)
select count(*)::integer as changed from past;
