-- Ask not to be notified any more: this worker is busy and looks by itself. By their number, for under a held snapshot a worker
-- has many dead rows.
delete from rowlock.parkings
where queue = any(:queues::text[]) and number = :number::bigint and worker = :worker::uuid;
