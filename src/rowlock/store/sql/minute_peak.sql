-- The busiest minute of the last day: when it was, and how many jobs all workers claimed in it. A large fleet writes millions
-- of rows a day: then only the last :most are looked at, which are some hours.
select busiest.minute, busiest.claimed
from (
    select recent.minute, sum(recent.claimed)::bigint as claimed
    from (
        select minute, claimed
        from rowlock.minutes
        where minute > rowlock.now() - interval '1 day'
        order by minute desc
        limit :most::integer
    ) as recent
    group by recent.minute
) as busiest
order by busiest.claimed desc, busiest.minute desc
limit 1;
