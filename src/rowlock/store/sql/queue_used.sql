-- The queues that have ready jobs, due or not: found by hopping through the claim's index, as for lane_list.sql.
with recursive named as (
    (select queue from rowlock.jobs where state = 'ready' order by queue limit 1)
    union all
    select (
        select other.queue
        from rowlock.jobs as other
        where other.state = 'ready' and other.queue > named.queue
        order by other.queue
        limit 1
    )
    from named
    where named.queue is not null
)
select queue from named where queue is not null;
