-- Say how a worker is: how many of its attempts go on after their time-out, whether it claims no more, how often in a row it has
-- started over because of a fault, what is wrong, and what it tries again and again.
update rowlock.workers
set stuck = :stuck::integer, stopping = :stopping::boolean, restarts = :restarts::integer, fault = :fault,
    failing = :failing, failing_since = :since::timestamptz
where id = :worker::uuid;
