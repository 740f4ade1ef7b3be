-- Look at the next :window live jobs below :before, newest first: returns those that match, and how far this look went.
-- The window is taken before anything is compared, so that the work is bounded whatever the filter: ten million jobs that do
-- not match are 5,000 short statements. Or, with :ids, it is these. Ids are UUIDv7: their order is that of creation.
-- Where nothing matches there is still one row, for how far it went. What is long is read only if it is wanted (:whole); with :brief
-- that is the beginning of the last error: a list shows no arguments, and they may be a megabyte each.
with seen as materialized (
    (
        select job.*
        from rowlock.jobs as job
        where :ids::uuid[] is null and job.id < :before::uuid
        order by job.id desc
        limit :window::integer
    )
    union all
    (
        select job.*
        from unnest(:ids::uuid[]) as asked (id)
        cross join lateral (select * from rowlock.jobs as job where job.id = asked.id limit 1) as job
    )
),
found as materialized (
    select *
    from seen
    where rowlock.shown_state(state, waits_for, wakes_at, run_at) = any(:states::text[])
        and (:queue is null or queue = :queue)
        and (:task is null or task = :task)
        and (:tag is null or :tag = any(tags))
        and (:key is null or key = :key)
        and (:reason is null or reason = :reason)
        and (:since::timestamptz is null or created_at >= :since::timestamptz)
        and (:until::timestamptz is null or created_at < :until::timestamptz)
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
    order by id desc
    limit :limit::integer
)
select
    went.looked, went.edge, went.newest, null::date as expires_on, {live_facts},
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
        (select seen.id from seen order by seen.id limit 1) as edge,
        (select max(seen.created_at) from seen) as newest
) as went
left join found as job on true
order by job.id desc;
