-- Ask not to be notified any more: this worker is busy and looks by itself.
delete from rowlock.parked where worker = :worker::uuid;
