-- How these jobs ended: a row for each that is not live, without a state where history does not know it either.
-- A job is looked for by its id: as `not exists` it is a join, which on the plan of an empty table reads all jobs each time.
-- History is looked into only for what is not live: it has many parts, and each is opened.
with over as materialized (
    select asked.id
    from unnest(:ids::uuid[]) as asked (id)
    where (select true from rowlock.jobs as job where job.id = asked.id limit 1) is null
)
select over.id, past.state, past.reason, past.failures, past.result, past.error
from over
left join lateral (
    select state, reason, failures, result::text as result, errors[cardinality(errors)]::text as error
    from rowlock.history
    where history.id = over.id
    limit 1
) as past on true;
