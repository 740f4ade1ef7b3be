-- How far workflows have come, and what they wait for.
-- Of each, how many steps have ended and how many children have not, counted among so many of its steps, and the one of its
-- open steps that somebody would name first.
select one.id, told.ended, told.children, told.looked, wait.name, wait.kind, wait.state, wait.until
from unnest(:ids::uuid[]) as one (id)
cross join lateral (
    select
        count(*) filter (where step.state in ('done', 'failed') and step.kind <> 'start') as ended,
        count(*) filter (where step.kind = 'child' and step.state = 'open') as children,
        count(*) as looked
    from (select state, kind from rowlock.workflow_steps where workflow_id = one.id limit :most::integer) as step
) as told
left join lateral (
    select name, kind, state, until
    from rowlock.workflow_steps
    where workflow_id = one.id and state in ('open', 'retrying')
    order by (kind = 'signal') desc, (kind = 'child') desc, until nulls last, started_at
    limit 1
) as wait on true;
