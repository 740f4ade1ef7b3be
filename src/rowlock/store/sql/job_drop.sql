-- Take back a resent insert: these jobs had been inserted before, and have ended since.
delete from rowlock.jobs where id = any(:ids::uuid[]) and state = 'ready' and claims = 0 returning id;
