-- Sessions that have kept rows of due jobs locked for so long, the oldest first: no worker claims these, for claims pass over what
-- is locked. How many of the first :most of each lane, and in which queues; found by the transaction that stands on a row. Without
-- such a session no job is looked at. A row that several sessions share bears the number of a list of their transactions. The two
-- kinds of number cannot be told apart, so one that can be a list's is taken for both; whoever is found has rows of jobs locked.
with owners as materialized (
    select
        owner.transactionid, owner.pid, coalesce(session.application_name, '') as application,
        session.usename::text as login, session.state,
        extract(epoch from clock_timestamp() - session.xact_start)::float8 as seconds
    from pg_locks as owner
    left join pg_stat_activity as session on session.pid = owner.pid
    where owner.locktype = 'transactionid'
        and owner.granted
        and owner.mode = 'ExclusiveLock'
        and owner.pid <> pg_backend_pid()
        and coalesce(session.xact_start <= clock_timestamp() - :held::interval, true)
        and owner.pid = any(array(
            select held.pid
            from pg_locks as held
            where held.locktype = 'relation'
                and held.granted
                and held.database = (select oid from pg_database where datname = current_database())
                and held.relation = 'rowlock.jobs'::regclass
                and held.mode in ('RowShareLock', 'RowExclusiveLock')
        ))
),
due as materialized (
    select asked.queue, job.id, job.holder
    from unnest(:queues::text[]) as asked (queue)
    cross join generate_series(-4, 4) as lane (priority)
    cross join lateral (
        select job.id, job.xmax as holder
        from rowlock.jobs as job
        where job.state = 'ready'
            and job.queue = asked.queue
            and job.priority = lane.priority::smallint
            and job.run_at <= rowlock.now()
        order by job.run_at, job.id
        limit :most::integer
    ) as job
    where exists (select from owners)
),
lists as materialized (
    select mxid_age(datminmxid) as oldest from pg_database where datname = current_database()
),
held as materialized (
    select queue, id, holder from due
    union all
    select due.queue, due.id, member.xid
    from due
    cross join lists
    -- Of no list there are no members; a number that is no list's would be an error.
    cross join lateral pg_get_multixact_members(case when mxid_age(due.holder) between 1 and lists.oldest then due.holder end) as member
)
select
    owners.pid, owners.application, owners.login, owners.state, owners.seconds, count(distinct held.id)::integer,
    array_agg(distinct held.queue order by held.queue)
from owners
join held on held.holder = owners.transactionid
group by owners.pid, owners.application, owners.login, owners.state, owners.seconds
order by owners.seconds desc nulls last
limit 5;
