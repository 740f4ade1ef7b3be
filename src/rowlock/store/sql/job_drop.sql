-- Take back a resent insert: these jobs had been inserted before, and have ended since.
with dropped as (
    delete from rowlock.jobs where id = any(:ids::uuid[]) and state = 'ready' and claims = 0 returning id, key
)
delete from rowlock.keys
where key = any(array(select key from dropped where key is not null)) and job = any(array(select id from dropped));
