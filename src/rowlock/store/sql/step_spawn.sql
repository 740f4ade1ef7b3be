-- Write down children that attempts of workflows are about to enqueue, in the same transaction; returns those that are new.
-- Fenced as in step_record. A child that was written down before was also enqueued before, and may have ended since: it is not
-- enqueued again.
with sent as materialized (
    select
        :ids::uuid[] as ids, :tokens::uuid[] as tokens, :keys::text[] as keys, :positions::integer[] as positions,
        :inputs::text[] as inputs, :children::uuid[] as children
),
mine as materialized (
    select job.id, step.*
    from sent
    cross join unnest(sent.ids, sent.tokens, sent.keys, sent.positions, sent.inputs, sent.children)
        as step (job, token, key, position, input, child)
    cross join lateral (
        select job.id
        from rowlock.jobs as job
        where job.id = step.job and job.token = step.token
        for no key update skip locked
    ) as job
),
written as (
    insert into rowlock.steps (job, key, position, kind, state, input, child, started_at)
    select id, key, position, 'child', 'open', input::json, child, rowlock.now() from mine
    on conflict (job, key) do nothing
    returning child
)
select token, child, child = any(array(select written.child from written)) as is_new from mine;
