-- Ask to be notified of new jobs on these queues.
insert into rowlock.parked (queue, worker)
select queue, :worker::uuid from unnest(:queues::text[]) as mine (queue)
on conflict (queue, worker) do nothing;
