-- Take a duty for the length of this transaction, if nobody else is at it; also returns whether there is such a duty.
-- With :worker only as long as that one's own lease holds: when the database's clock steps ahead all leases are over, and those
-- whose own is over would rescue the jobs of the living.
with mine as materialized (
    select name
    from rowlock.duties
    where name = :duty
        and (
            :worker::uuid is null
            or exists (select from rowlock.workers where id = :worker::uuid and lease > rowlock.now())
        )
    for update skip locked
)
select exists (select from mine), exists (select from rowlock.duties where name = :duty);
