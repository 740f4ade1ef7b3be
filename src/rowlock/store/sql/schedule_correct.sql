-- Move the next slots of schedules whose rule gives another one than it did: the data of their time zone has changed.
with sent as materialized (
    select :names::text[] as names, :versions::text[] as versions, :next_ats::timestamptz[] as next_ats
)
update rowlock.schedules as schedule
set next_at = (select next_ats[array_position(names, schedule.name)] from sent)
where schedule.name = any(array(select unnest(names) from sent))
    and schedule.xmin::text = (select versions[array_position(names, schedule.name)] from sent)
returning schedule.name;
