-- Take a job out of its queue that no worker can claim, a part of its row cannot be read, say. It waits, visible, and the
-- reason says why; job_take_up passes it over. Nothing large is read here.
update rowlock.jobs
set state = 'waiting', waits_for = 'code', reason = :reason
where id = :id::uuid and (state = 'ready' or waits_for in ('suspect', 'code'))
returning id;
