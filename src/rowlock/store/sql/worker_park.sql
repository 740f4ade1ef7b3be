-- Ask to be notified of new jobs on these queues: by a new row for each, all of one number, in place of those with the number
-- :before. Returns the number.
-- One that :renews has parked before, and does so again only if on one of its queues nobody has parked among the last 200, half of
-- those that an enqueue looks at. One parking is enough for a queue, because all who serve it listen to its channel; when each
-- parked anew that was 200 behind, 201 idle workers never ceased to.
with next as materialized (
    select nextval('rowlock.parking_number') as number
    where not :renews::boolean or exists (
        select
        from unnest(:queues::text[]) as mine (queue)
        where not exists (
            select
            from rowlock.parkings
            where parkings.queue = mine.queue
                and parkings.number > (select last_value - 200 from rowlock.parking_number)
        )
    )
),
gone as (
    delete from rowlock.parkings
    where queue = any(:queues::text[]) and number = :before::bigint and worker = :worker::uuid and exists (select from next)
),
parked as (
    insert into rowlock.parkings (number, queue, worker)
    select number, mine.queue, :worker::uuid from next cross join unnest(:queues::text[]) as mine (queue)
)
select coalesce((select number from next), :before::bigint);
