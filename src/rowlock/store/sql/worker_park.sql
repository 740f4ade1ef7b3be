-- Ask to be notified of new jobs on these queues: by a new row for each, all of one number, in place of those with the number
-- :before. Answers the new number.
with next as materialized (
    select nextval('rowlock.parking_number') as number
),
gone as (
    delete from rowlock.parkings
    where queue = any(:queues::text[]) and number = :before::bigint and worker = :worker::uuid
),
parked as (
    insert into rowlock.parkings (number, queue, worker)
    select number, mine.queue, :worker::uuid from next cross join unnest(:queues::text[]) as mine (queue)
)
select number from next;
