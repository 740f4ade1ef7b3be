-- Bring forward jobs that have a time in the future only because the database's clock was set back, by :by: those that were
-- made, claimed for the last time, or failed for the last time, later than now; and workflows that are parked of which a step has
-- ended later than now, or waits since. What was enqueued for at once is due at once again. An attempt may have begun before the
-- clock went ahead: then a retry says by its error when it was written, and nothing says so of a snooze.
-- Up to :limit, those first that are due the soonest, in the queues of one worker; others look after theirs. Not further than
-- :within after what the clock was set back by: what is due later by more was wanted later, and need not be walked over.
-- All these times become now, so that whoever sees the same step of the clock finds nothing more to do. Of a workflow that is parked its steps say when it is due: the sleeps and time-outs that it began meanwhile, and its tries,
-- come forward with it. A sleep until a moment keeps that; and who wakes too soon because of one parks again.
with picked as materialized (
    select found.id, found.wakes_at
    from unnest(:queues::text[]) as lane (queue)
    cross join unnest(:priorities::smallint[]) as level (priority)
    cross join lateral (
        select job.id, job.wakes_at
        from rowlock.jobs as job
        where job.state = 'ready'
            and job.queue = lane.queue
            and job.priority = level.priority
            and job.run_at > rowlock.now()
            and job.run_at <= rowlock.now() + :by::interval + :within::interval
            and (
                greatest(
                    job.created_at, job.started_at, (job.errors[cardinality(job.errors)] ->> 'ended_at')::timestamptz
                ) > rowlock.now()
                or job.wakes_at is not null and exists (
                    select from rowlock.steps as step
                    where step.job = job.id
                        and (
                            step.ended_at > rowlock.now()
                            or step.state = 'open' and step.started_at > rowlock.now() and step.until > rowlock.now()
                                and (step.kind <> 'sleep' or step.input #>> '{}' !~ '^\d{4}-')
                        )
                )
            )
        order by job.run_at, job.id
        limit :limit::integer
        for update skip locked
    ) as found
    limit :limit::integer
),
eased as (
    update rowlock.steps
    set until = case when state in ('open', 'retrying') then greatest(until - :by::interval, rowlock.now()) else until end,
        started_at = case when state in ('open', 'retrying') then least(started_at, rowlock.now()) else started_at end,
        ended_at = case when ended_at > rowlock.now() then rowlock.now() else ended_at end
    where job = any(array(select id from picked where wakes_at is not null))
        and (
            state in ('open', 'retrying')
            and until > rowlock.now()
            and (state = 'retrying' or started_at > rowlock.now())
            and (kind <> 'sleep' or input #>> '{}' !~ '^\d{4}-')
            or ended_at > rowlock.now()
        )
)
update rowlock.jobs
set run_at = greatest(run_at - :by::interval, rowlock.now()),
    created_at = least(created_at, rowlock.now()),
    started_at = case when started_at > rowlock.now() then rowlock.now() else started_at end,
    expires_at = case when created_at > rowlock.now() then expires_at - :by::interval else expires_at end,
    errors = case
        when (errors[cardinality(errors)] ->> 'ended_at')::timestamptz > rowlock.now() then
            trim_array(errors, 1)
            || (errors[cardinality(errors)]::jsonb || jsonb_build_object('ended_at', rowlock.now()))::json
        else errors
    end
where id = any(array(select id from picked))
returning id;
