-- Say how a worker is: how many of its attempts go on after their time-out, whether it claims no more, how often in a row it has
-- begun anew because of a fault, and what is wrong.
update rowlock.workers
set stuck = :stuck::integer, stopping = :stopping::boolean, restarts = :restarts::integer, fault = :fault
where id = :worker::uuid;
