-- Count rescues, and jobs that failed as poison, within the last hour and day; no more than :most in all are looked at.
with recent as materialized (
    select event.kind, event.at
    from rowlock.events as event
    where event.at > rowlock.now() - interval '1 day' and event.kind in ('rescued', 'poisoned')
    limit :most::integer
)
select
    kind, count(*) filter (where at > rowlock.now() - interval '1 hour')::integer as hour, count(*)::integer as day,
    (select count(*) from recent) >= :most::integer as more
from recent
group by kind;
