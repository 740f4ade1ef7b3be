-- How these jobs ended: a row for each that is not live, without a state where history does not know it either.
-- History is looked into only for what is not live: it has many parts, and each is opened.
with over as materialized (
    select asked.id
    from unnest(:ids::uuid[]) as asked (id)
    where not exists (select from rowlock.jobs as job where job.id = asked.id)
)
select over.id, past.state, past.reason, past.failures, past.result, past.error
from over
left join lateral (
    select state, reason, failures, result::text as result, errors[cardinality(errors)]::text as error
    from rowlock.history
    where history.id = over.id
    limit 1
) as past on true;
