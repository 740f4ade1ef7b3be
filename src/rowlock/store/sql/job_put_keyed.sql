-- Insert jobs with keys one by one, whoever holds these; returns for each the job that has its key, and whether it was made.
-- The order is the caller's, by key: each is done with its key, and with the row of the job that holds it, before the next, so
-- that two callers cannot deadlock. Unlike in job_enqueue, a key may have a period, and a held one may mean more than its holder.
with sent as materialized (
    select
        :ids::uuid[] as ids, :queues::text[] as queues, :tasks::text[] as tasks, :priorities::smallint[] as priorities,
        :attempts::integer[] as attempts, :run_ats::timestamptz[] as run_ats, :delays::interval[] as delays,
        :lifetimes::interval[] as lifetimes, :args::text[] as args, :tags::text[] as tags, :keys::text[] as keys,
        :periods::interval[] as periods, :taken::text[] as taken, :at_most::interval[] as at_most, :named::boolean[] as named,
        :versions::integer[] as versions
)
select asked.id, made.job, made.of_task, made.on_queue, made.created
from sent
cross join unnest(
    sent.ids, sent.queues, sent.tasks, sent.priorities, sent.attempts, sent.run_ats, sent.delays, sent.lifetimes,
    sent.args, sent.tags, sent.keys, sent.periods, sent.taken, sent.at_most, sent.named, sent.versions
) as asked (
    id, queue, task, priority, attempts, run_at, delay, lifetime, args, tags, key, period, taken, at_most, is_priority_named,
    version
)
cross join lateral rowlock.put(
    asked.id, asked.queue, asked.task, asked.args::json, asked.priority, asked.attempts, asked.run_at, asked.delay,
    asked.lifetime, asked.tags::text[], asked.key, asked.period, asked.taken, asked.at_most, asked.is_priority_named,
    asked.version
) as made;
