-- Remove up to :limit of the slots that were written down over a week ago; returns how many.
-- By then no slot of theirs can come again: a schedule's next slot never goes back.
with old as materialized (
    select ctid
    from rowlock.firings
    where at < rowlock.now() - interval '7 days'
    order by at
    limit :limit::integer
),
removed as (
    delete from rowlock.firings where ctid = any(array(select ctid from old)) returning at
)
select count(*)::integer from removed;
