-- Remove up to :limit rows of minutes that are over a day old; returns how many.
with old as materialized (
    select ctid
    from rowlock.minutes
    where minute < rowlock.now() - interval '1 day'
    order by minute, worker, queue, task
    limit :limit::integer
    for update skip locked
),
removed as (
    delete from rowlock.minutes where ctid = any(array(select ctid from old)) returning minute
)
select count(*)::integer from removed;
