-- Say how a worker is: how many of its attempts go on after their time-out, and whether it claims no more.
update rowlock.workers set stuck = :stuck::integer, stopping = :stopping::boolean where id = :worker::uuid;
