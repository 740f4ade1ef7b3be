-- Look at the next :window ended jobs below :before, newest first: returns those that match, and how far this look went.
-- As job_scan; and no further down than :down_to, which is how far the look at live jobs went.
-- With :trouble nothing that succeeded is wanted, and the window is taken from an index of the others: a handful of failures
-- among millions that went well is one look. With :ended_after as well, it is taken from what ended since: all ids of those are
-- read, for a job may have failed just now that was made long ago.
-- With :by_end the window is the next one by when they ended, latest first, below :before_end and :before, back to :oldest.
with seen as materialized (
    (
        select ended.*
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
        select ended.*
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
        select ended.*
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
            select * from rowlock.history as past where past.id = mine.id and past.expires_on = mine.expires_on limit 1
        ) as ended
    )
    union all
    (
        select ended.*
        from unnest(:ids::uuid[]) as asked (id)
        cross join lateral (select * from rowlock.history as ended where ended.id = asked.id limit 1) as ended
    )
    union all
    (
        select ended.*
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
        select ended.*
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
    select *
    from seen
    where state = any(:states::text[])
        and (:queue is null or queue = :queue)
        and (:task is null or task = :task)
        and (:tag is null or :tag = any(tags))
        and (:key is null or key = :key)
        and (:reason is null or reason = :reason)
        and (:since::timestamptz is null or created_at >= :since::timestamptz)
        and (:until::timestamptz is null or created_at < :until::timestamptz)
        and (:ended_after::timestamptz is null or ended_at >= :ended_after::timestamptz)
        and (:ended_before::timestamptz is null or ended_at < :ended_before::timestamptz)
        and (
            :error is null
            or errors[cardinality(errors)] ->> 'type' = :error
            or right(errors[cardinality(errors)] ->> 'type', length(:error) + 1) = '.' || :error
        )
        and (
            :args::jsonb is null
            or not exists (
                select from jsonb_each(:args::jsonb) as asked
                where (args -> asked.key)::jsonb is distinct from asked.value
            )
        )
    order by case when :by_end::boolean then ended_at end desc, id desc
    limit :limit::integer
)
select
    went.looked, went.edge, went.newest, job.expires_on, {ended_facts},
    case when :whole::boolean and not :brief::boolean then job.args::text end as args,
    null::text as result,
    case
        when :brief::boolean then (
            select
                json_build_array(
                    json_build_object(
                        'type', last.error -> 'type', 'message', left(last.error ->> 'message', 400),
                        'attempt', last.error -> 'attempt', 'worker', last.error -> 'worker',
                        'started_at', last.error -> 'started_at', 'ended_at', last.error -> 'ended_at'
                    )
                )::text
            from (select job.errors[cardinality(job.errors)] as error) as last
            where last.error is not null
        )
        when :whole::boolean then array_to_json(job.errors)::text
    end as errors,
    case when :whole::boolean and not :brief::boolean then job.workflow_state::text end as workflow_state
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
left join found as job on true
order by case when :by_end::boolean then job.ended_at end desc, job.id desc;
