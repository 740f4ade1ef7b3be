-- Jobs, live and ended, whose ids begin or end so. A beginning is a range of ids, which their indexes know. Ends are looked
-- for among the newest :newest of each: an index for them would cost every enqueue.
(select id from rowlock.jobs where id between :low::uuid and :high::uuid order by id desc limit :most::integer)
union
(select id from rowlock.history where id between :low::uuid and :high::uuid order by id desc limit :most::integer)
union
(
    select live.id
    from (select id from rowlock.jobs order by id desc limit :newest::integer) as live
    where replace(live.id::text, '-', '') like '%' || :ending
    limit :most::integer
)
union
(
    select ended.id
    from (select id from rowlock.history order by id desc limit :newest::integer) as ended
    where replace(ended.id::text, '-', '') like '%' || :ending
    limit :most::integer
)
order by id desc
limit :most::integer;
