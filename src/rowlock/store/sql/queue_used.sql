-- The queues beside the :known ones that have ready jobs, due or not: found by hopping through the claim's index, as for
-- lane_list.sql, in each gap between two known names. So what is dead in known queues under a held snapshot is not walked.
with recursive gap as (
    select name, lead(name) over (order by name) as next
    from (select distinct unnest(array['']::text[] || :known::text[]) as name) as known
),
named (name, next, is_new) as (
    select name, next, false from gap
    union all
    select found.queue, named.next, true
    from named
    cross join lateral (
        (
            select job.queue
            from rowlock.jobs as job
            where job.state = 'ready' and job.queue > named.name and job.queue < named.next
            order by job.queue
            limit 1
        )
        union all
        (
            select job.queue
            from rowlock.jobs as job
            where named.next is null and job.state = 'ready' and job.queue > named.name
            order by job.queue
            limit 1
        )
    ) as found
)
select name from named where is_new;
