-- Take back a listener's wish to be notified when these jobs end.
delete from rowlock.waiters where job = any(:ids::uuid[]) and listener = :listener::uuid;
