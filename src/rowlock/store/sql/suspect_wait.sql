-- How many suspects wait, :most at the most, and for how many seconds the first of them has been due.
select
    (select count(*)::integer from (select from rowlock.jobs where waits_for = 'suspect' limit :most::integer) as those),
    (
        select greatest(extract(epoch from rowlock.now() - run_at), 0)::float8
        from rowlock.jobs
        where waits_for = 'suspect'
        order by run_at, id
        limit 1
    );
