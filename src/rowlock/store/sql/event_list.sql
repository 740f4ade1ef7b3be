-- The latest events, newest first: of one job, or of all.
-- Two looks, of which one is never taken. By time it is a few rows of an index, however many events are kept. By job they are
-- found first and sorted then: in one step, the planner would rather walk all events by time until it meets enough of the job's.
with mine as materialized (
    select id, at, kind, job, actor, login, details from rowlock.events where job = :job::uuid
)
(
    select id, at, kind, job, actor, login, details::text
    from rowlock.events
    where :job::uuid is null and (at, id) < (:before_at::timestamptz, :before_id::uuid)
    order by at desc, id desc
    limit :limit::integer
)
union all
(
    select id, at, kind, job, actor, login, details::text
    from mine
    where (at, id) < (:before_at::timestamptz, :before_id::uuid)
    order by at desc, id desc
    limit :limit::integer
);
