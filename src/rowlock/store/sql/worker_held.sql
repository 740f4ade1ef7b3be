-- The jobs that this worker holds: those that it was seen to hold, found by id and token, and what it has claimed since.
-- Under a held snapshot the index of what a worker holds has a dead entry for each job that it ever claimed; all but the last
-- ones are passed over. Also returns from when on the next look has to search: a claim may be committed later than it was made.
-- Searched for by itself: within the union the primary key, whose order the union can use, was taken for as cheap on a table
-- that was vacuumed while it was empty, and each look walked through all of it (600,000 buffers after 300,000 jobs).
-- A clock that was set back makes claims look older than they are: then all are looked at.
with since as materialized (
    select case
        when :since::timestamptz + interval '1 minute' <= rowlock.now() then :since::timestamptz else '-infinity'
    end as moment
),
sent as materialized (
    select :ids::uuid[] as ids, :tokens::uuid[] as tokens
),
seen as materialized (
    select job.id, job.token
    from sent
    cross join unnest(sent.ids, sent.tokens) as attempt (id, token)
    cross join lateral (
        select one.id, one.token from rowlock.jobs as one where one.id = attempt.id and one.token = attempt.token limit 1
    ) as job
),
claimed as materialized (
    select id, token
    from rowlock.jobs
    where state = 'running' and worker = :worker::uuid and started_at >= (select moment from since)
),
held as materialized (
    select id, token from seen union select id, token from claimed
)
select
    array(select id::text from held order by id), array(select token::text from held order by id),
    (rowlock.now() - interval '1 minute')::text;
