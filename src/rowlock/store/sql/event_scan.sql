-- Look at the next :window events, newest first, for those of a kind, or by somebody; or at all events of one job.
-- Returns how far it looked, too. No index knows kinds or actors: operators ask seldom, and a verb that changes a million jobs
-- would pay for it a million times. What was found is looked up again, so that 20,000 rows of details are not carried along.
with seen as materialized (
    (
        select event.at, event.id, event.kind, event.actor
        from rowlock.events as event
        where :job::uuid is null and (event.at, event.id) < (:before_at::timestamptz, :before_id::uuid)
        order by event.at desc, event.id desc
        limit :window::integer
    )
    union all
    (
        select event.at, event.id, event.kind, event.actor
        from rowlock.events as event
        where event.job = :job::uuid and (event.at, event.id) < (:before_at::timestamptz, :before_id::uuid)
    )
),
found as materialized (
    select seen.at, seen.id
    from seen
    where (:kind is null or seen.kind = :kind)
        and (:actor is null or strpos(lower(seen.actor), lower(:actor)) > 0)
    order by seen.at desc, seen.id desc
    limit :limit::integer
)
select went.looked, went.at, went.id, event.id, event.at, event.kind, event.job, event.actor, event.login, event.details
from (
    select count(*) as looked, min(seen.at) as at, (array_agg(seen.id order by seen.at, seen.id))[1] as id from seen
) as went
left join (
    found
    cross join lateral (
        select whole.id, whole.at, whole.kind, whole.job, whole.actor, whole.login, whole.details::text
        from rowlock.events as whole
        where whole.at = found.at and whole.id = found.id
        limit 1
    ) as event
) on true
order by event.at desc, event.id desc;
