-- Store a signal for a workflow that somebody sends by hand, as signal_send, and write down who it was and why.
-- One that was sent before is not stored twice, nor is its event.
with sent as materialized (
    select told.answer, told.job, told.state
    from rowlock.send_signal(:id::uuid, :target, :name, :payload::json, :key) as told
),
logged as (
    insert into rowlock.events (kind, job, actor, details)
    select
        'signalled', sent.job, :actor,
        json_strip_nulls(json_build_object('task', job.task, 'queue', job.queue, 'why', :why, 'signal', :name, 'key', :key))
    from sent
    cross join lateral (select one.task, one.queue from rowlock.jobs as one where one.id = sent.job limit 1) as job
    where sent.answer = 'sent'
)
select answer, job, state from sent;
