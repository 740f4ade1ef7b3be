-- Remove what listeners that died have left: old wishes about jobs that are not live.
-- By id, each for itself: as `not exists` it is a join, which on the plan of an empty table reads all jobs.
delete from rowlock.waiters as waiter
where waiter.at < rowlock.now() - :age::interval
    and (select true from rowlock.jobs as job where job.id = waiter.job limit 1) is null;
