-- Look at the next :window live workflows below :before, newest first: returns those that match, and how far it went.
-- As workflow_list, for those who ask for live ones only: among millions that have ended, its windows would hold few of them.
-- Each is looked up by its id, for a range of ids holds all that have ended between two that live.
with seen as materialized (
    select job.id from rowlock.jobs as job
    where job.version is not null and job.id < :before::uuid
    order by job.id desc
    limit :window::integer
),
went as materialized (
    select (select count(*) from seen) as looked, (select seen.id from seen order by seen.id limit 1) as edge
),
found as materialized (
    select one.*
    from (select seen.id from seen order by seen.id desc) as next
    cross join lateral (
        select
            flow.id, flow.workflow, flow.version, flow.state, flow.cancelling, flow.current_step, flow.waits_for, flow.reason,
            flow.key, flow.parent, flow.queue, flow.created_at, flow.started_at, flow.ended_at, flow.updated_at
        from rowlock.workflows as flow
        where flow.id = next.id
            and (:workflow is null or flow.workflow = :workflow)
            and (:version::integer is null or flow.version = :version::integer)
            and flow.state = any(:states::text[])
            and (:queue is null or flow.queue = :queue)
            and (:key is null or flow.key = :key)
        limit 1
    ) as one
    limit :limit::integer
)
select went.looked, went.edge, found.* from went left join found on true order by found.id desc;
