-- Look at the next :window live jobs as job_scan does, for a role that may not read their arguments and errors.
-- A statement of its own: PostgreSQL asks for the right to every column that is named, needed or not.
with seen as materialized (
    (
        select job.id, job.created_at
        from rowlock.jobs as job
        where :ids::uuid[] is null and job.id < :before::uuid
        order by job.id desc
        limit :window::integer
    )
    union all
    (
        select job.id, job.created_at
        from unnest(:ids::uuid[]) as asked (id)
        cross join lateral (select job.id, job.created_at from rowlock.jobs as job where job.id = asked.id limit 1) as job
    )
),
found as materialized (
    select
        null::date as expires_on, {live_facts}, {no_data}
    from seen
    join rowlock.jobs as job on job.id = seen.id
    where rowlock.shown_state(job.state, job.waits_for, job.wakes_at, job.run_at) = any(:states::text[])
        and (:queue is null or job.queue = :queue)
        and (:task is null or job.task = :task)
        and (:tag is null or :tag = any(job.tags))
        and (:key is null or job.key = :key)
        and (:reason is null or job.reason = :reason)
        and (:since::timestamptz is null or job.created_at >= :since::timestamptz)
        and (:until::timestamptz is null or job.created_at < :until::timestamptz)
    order by job.id desc
    limit :limit::integer
)
select went.looked, went.edge, went.newest, found.*
from (
    select
        (select count(*) from seen) as looked,
        (select seen.id from seen order by seen.id limit 1) as edge,
        (select max(seen.created_at) from seen) as newest
) as went
left join found on true
order by found.id desc;
