-- Forget the failures of tasks that have not failed for so long, and those that were cleared away.
delete from rowlock.breakers
where coalesce(failed_at[cardinality(failed_at)] < rowlock.now() - :age::interval, true)
returning task;
