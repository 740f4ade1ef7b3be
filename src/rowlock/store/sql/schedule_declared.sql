-- What there is already of the schedules that code declares, and of all that go by a time zone: its data may have changed.
select
    schedule.name, schedule.xmin::text as version, schedule.cron, schedule.tz,
    extract(epoch from schedule.every)::text as every, schedule.declared::text, schedule.edits::text, schedule.next_at,
    schedule.last_at
from rowlock.schedules as schedule
where schedule.name = any(:names::text[]) or schedule.tz is not null;
