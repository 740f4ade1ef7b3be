-- Look at the next :window ended jobs as history_scan does, for a role that may not read arguments, results and errors.
-- A statement of its own, as job_outline is. With the day on which it expires, a job is found in one partition.
with seen as materialized (
    (
        select ended.id, ended.created_at, ended.ended_at, ended.expires_on
        from rowlock.history as ended
        where :ids::uuid[] is null
            and not :by_end::boolean
            and not :trouble::boolean
            and ended.id < :before::uuid
            and ended.id >= :down_to::uuid
        order by ended.id desc
        limit :window::integer
    )
    union all
    (
        select ended.id, ended.created_at, ended.ended_at, ended.expires_on
        from rowlock.history as ended
        where :ids::uuid[] is null
            and not :by_end::boolean
            and :trouble::boolean
            and :ended_after::timestamptz is null
            and ended.state <> 'succeeded'
            and ended.id < :before::uuid
            and ended.id >= :down_to::uuid
        order by ended.id desc
        limit :window::integer
    )
    union all
    (
        select ended.id, ended.created_at, ended.ended_at, ended.expires_on
        from (
            select lately.id, lately.expires_on
            from (
                select past.id, past.expires_on
                from rowlock.history as past
                where :ids::uuid[] is null
                    and not :by_end::boolean
                    and :trouble::boolean
                    and past.state <> 'succeeded'
                    and past.ended_at >= :ended_after::timestamptz
                    and past.ended_at < coalesce(:ended_before::timestamptz, 'infinity')
                offset 0  -- the index by time is read, and not the one by id until enough match
            ) as lately
            where lately.id < :before::uuid and lately.id >= :down_to::uuid
            order by lately.id desc
            limit :window::integer
        ) as mine
        cross join lateral (
            select past.id, past.created_at, past.ended_at, past.expires_on
            from rowlock.history as past
            where past.id = mine.id and past.expires_on = mine.expires_on limit 1
        ) as ended
    )
    union all
    (
        select ended.id, ended.created_at, ended.ended_at, ended.expires_on
        from unnest(:ids::uuid[]) as asked (id)
        cross join lateral (
            select past.id, past.created_at, past.ended_at, past.expires_on from rowlock.history as past where past.id = asked.id limit 1
        ) as ended
    )
    union all
    (
        select ended.id, ended.created_at, ended.ended_at, ended.expires_on
        from rowlock.history as ended
        where :by_end::boolean
            and not :trouble::boolean
            and (ended.ended_at, ended.id) < (:before_end::timestamptz, :before::uuid)
            and ended.ended_at >= :oldest::timestamptz
            and ended.ended_at < coalesce(:ended_before::timestamptz, 'infinity')
        order by ended.ended_at desc, ended.id desc
        limit :window::integer
    )
    union all
    (
        select ended.id, ended.created_at, ended.ended_at, ended.expires_on
        from rowlock.history as ended
        where :by_end::boolean
            and :trouble::boolean
            and ended.state <> 'succeeded'
            and (ended.ended_at, ended.id) < (:before_end::timestamptz, :before::uuid)
            and ended.ended_at >= :oldest::timestamptz
            and ended.ended_at < coalesce(:ended_before::timestamptz, 'infinity')
        order by ended.ended_at desc, ended.id desc
        limit :window::integer
    )
),
found as materialized (
    select
        job.expires_on, {ended_facts}, {no_data}
    from seen
    join rowlock.history as job on job.id = seen.id and job.expires_on = seen.expires_on
    where job.state = any(:states::text[])
        and (:queue is null or job.queue = :queue)
        and (:task is null or job.task = :task)
        and (:tag is null or :tag = any(job.tags))
        and (:key is null or job.key = :key)
        and (:reason is null or job.reason = :reason)
        and (:since::timestamptz is null or job.created_at >= :since::timestamptz)
        and (:until::timestamptz is null or job.created_at < :until::timestamptz)
        and (:ended_after::timestamptz is null or job.ended_at >= :ended_after::timestamptz)
        and (:ended_before::timestamptz is null or job.ended_at < :ended_before::timestamptz)
    order by case when :by_end::boolean then job.ended_at end desc, job.id desc
    limit :limit::integer
)
select went.looked, went.edge, went.newest, found.*
from (
    select
        (select count(*) from seen) as looked,
        (
            select case when :by_end::boolean then seen.ended_at::text || '/' else '' end || seen.id::text
            from seen
            order by case when :by_end::boolean then seen.ended_at end, seen.id
            limit 1
        ) as edge,
        (select max(seen.created_at) from seen) as newest
) as went
left join found on true
order by case when :by_end::boolean then found.ended_at end desc, found.id desc;
