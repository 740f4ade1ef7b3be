-- Lock a schedule: until the end of this transaction nobody else fires, changes or removes it.
select schedule.name from rowlock.schedules as schedule where schedule.name = :name for update;
