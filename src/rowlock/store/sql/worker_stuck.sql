-- Say how many attempts of a worker go on after their time-out.
update rowlock.workers set stuck = :stuck::integer where id = :worker::uuid;
