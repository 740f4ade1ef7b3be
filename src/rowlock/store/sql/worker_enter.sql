-- Show that this worker's renewing session lives: take the advisory lock of its id, then enter it among those present.
-- The lock is taken before the row can be seen. While an earlier session of this worker, cut off and not yet ended, still
-- has it, the row goes: when that session ends, nobody must take this worker for dead. Returns whether it has the lock.
with mine as materialized (
    select pg_try_advisory_lock(hashtextextended('rowlock.present ' || :worker, 0)) as held
),
gone as (
    delete from rowlock.present where worker = :worker::uuid and not (select held from mine)
),
entered as (
    insert into rowlock.present (worker, server)
    select :worker::uuid, pg_postmaster_start_time() from mine where held
    on conflict (worker) do update set server = excluded.server, suspected_at = null
)
select held from mine;
