-- Take this worker off the books.
with unparked as (
    delete from rowlock.parkings where worker = :worker::uuid
),
absent as (
    delete from rowlock.present where worker = :worker::uuid
)
delete from rowlock.workers where id = :worker::uuid;
