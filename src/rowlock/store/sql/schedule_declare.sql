-- Write down what code declares of its schedules: new ones, and those that were looked at and are still as they were then.
-- :versions are of the rows that were looked at, null where there was none (:code_versions are workflows'). Whoever else has written one meanwhile is not
-- overwritten: it is looked at again. Pauses, and what was fired, are not code's to say.
with sent as materialized (
    select
        :names::text[] as names, :versions::text[] as versions, :crons::text[] as crons, :zones::text[] as zones,
        :everys::interval[] as everys, :tasks::text[] as tasks, :args::text[] as args, :queues::text[] as queues,
        :priorities::smallint[] as priorities, :attempts::integer[] as attempts,
        :code_versions::integer[] as code_versions, :expires::interval[] as expires,
        :tags::text[] as tags, :jitters::interval[] as jitters, :overlaps::text[] as overlaps,
        :catch_ups::integer[] as catch_ups, :at_boots::boolean[] as at_boots, :declared::text[] as declared,
        :next_ats::timestamptz[] as next_ats
)
insert into rowlock.schedules (
    name, cron, tz, every, task, args, queue, priority, attempts, version, expires, tags, jitter, overlap, catch_up,
    at_boot, declared, next_at, created_at
)
select
    said.name, said.cron, said.tz, said.every, said.task, said.args::json, said.queue, said.priority, said.attempts,
    said.version, said.expires, said.tags::text[], said.jitter, said.overlap, said.catch_up, said.at_boot,
    said.declared::json, said.next_at, rowlock.now()
from sent
cross join unnest(
    sent.names, sent.crons, sent.zones, sent.everys, sent.tasks, sent.args, sent.queues, sent.priorities, sent.attempts,
    sent.code_versions, sent.expires, sent.tags, sent.jitters, sent.overlaps, sent.catch_ups, sent.at_boots, sent.declared,
    sent.next_ats
) as said (
    name, cron, tz, every, task, args, queue, priority, attempts, version, expires, tags, jitter, overlap, catch_up,
    at_boot, declared, next_at
)
on conflict (name) do update
set
    cron = excluded.cron, tz = excluded.tz, every = excluded.every, task = excluded.task, args = excluded.args,
    queue = excluded.queue, priority = excluded.priority, attempts = excluded.attempts, version = excluded.version,
    expires = excluded.expires, tags = excluded.tags, jitter = excluded.jitter, overlap = excluded.overlap,
    catch_up = excluded.catch_up, at_boot = excluded.at_boot, declared = excluded.declared, next_at = excluded.next_at
where schedules.xmin::text = (select versions[array_position(names, schedules.name)] from sent)
returning name;
