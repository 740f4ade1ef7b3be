-- Look at the next :window workflows below :before, live and ended, newest first: returns those that match, and how far it went.
-- The window is taken before anything is compared, as in job_scan, and from the tables, of which each has an index of its
-- workflows: of the view, all were read to be sorted. Where nothing matches there is still one row.
with seen as materialized (
    select newest.id
    from (
        (
            select job.id from rowlock.jobs as job
            where job.version is not null and job.id < :before::uuid
            order by job.id desc
            limit :window::integer
        )
        union all
        (
            select past.id from rowlock.history as past
            where past.version is not null and past.id < :before::uuid
            order by past.id desc
            limit :window::integer
        )
    ) as newest
    order by newest.id desc
    limit :window::integer
),
went as materialized (
    select (select count(*) from seen) as looked, (select seen.id from seen order by seen.id limit 1) as edge
),
found as materialized (
    select
        one.id, one.workflow, one.version, one.state, one.cancelling, one.current_step, one.waits_for, one.reason, one.key,
        one.parent, one.queue, one.created_at, one.started_at, one.ended_at, one.updated_at
    from rowlock.workflows as one
    where one.id < :before::uuid
        and one.id >= (select edge from went)
        and (:workflow is null or one.workflow = :workflow)
        and (:version::integer is null or one.version = :version::integer)
        and (:states::text[] is null or one.state = any(:states::text[]))
        and (:queue is null or one.queue = :queue)
        and (:key is null or one.key = :key)
    order by one.id desc
    limit :limit::integer
)
select went.looked, went.edge, found.* from went left join found on true order by found.id desc;
