-- Write down who enqueued a job by hand, once: said again after a lost reply, it adds nothing.
insert into rowlock.events (kind, job, actor, details)
select
    'enqueued', :id::uuid, :actor,
    json_strip_nulls(json_build_object('task', :task, 'queue', :queue, 'why', :why, 'like', :like::uuid))
where not exists (select from rowlock.events where job = :id::uuid and kind = 'enqueued');
