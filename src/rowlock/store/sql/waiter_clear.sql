-- Remove what listeners that died have left: old wishes about jobs that are not live.
delete from rowlock.waiters as waiter
where waiter.at < rowlock.now() - :age::interval
    and not exists (select from rowlock.jobs as job where job.id = waiter.job);
