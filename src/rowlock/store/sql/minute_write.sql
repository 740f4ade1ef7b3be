-- Write what a worker has counted, whole minutes so far, and how its claims went; returns the database's time.
with counted as (
    insert into rowlock.minutes (
        minute, worker, queue, task, claimed, succeeded, failed, cancelled, retried, seconds, slowest, durations, waited,
        longest, waits
    )
    select
        to_timestamp(fresh.minute * 60), :worker::uuid, fresh.queue, fresh.task, fresh.claimed, fresh.succeeded,
        fresh.failed, fresh.cancelled, fresh.retried, fresh.seconds, fresh.slowest, fresh.durations,
        fresh.waited, fresh.longest, fresh.waits
    from unnest(
        :minutes::bigint[], :queues::text[], :tasks::text[], :claimed::integer[], :succeeded::integer[],
        :failed::integer[], :cancelled::integer[], :retried::integer[], :seconds::float8[], :slowest::float8[],
        :durations::numeric[], :waited::float8[], :longest::float8[], :waits::numeric[]
    ) as fresh (
        minute, queue, task, claimed, succeeded, failed, cancelled, retried, seconds, slowest, durations, waited, longest,
        waits
    )
    on conflict (minute, worker, queue, task) do update
    set claimed = excluded.claimed, succeeded = excluded.succeeded, failed = excluded.failed,
        cancelled = excluded.cancelled, retried = excluded.retried, seconds = excluded.seconds,
        slowest = excluded.slowest, durations = excluded.durations, waited = excluded.waited, longest = excluded.longest,
        waits = excluded.waits
),
timed as (
    update rowlock.workers
    set claims = :claims::integer, claimed = :claim_rows::integer, claim_seconds = :claim_seconds::float8,
        claim_slowest = :claim_slowest::float8
    where id = :worker::uuid
)
select extract(epoch from rowlock.now())::float8;
