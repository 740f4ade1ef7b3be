-- Queues with jobs that wait for the code of these tasks.
select distinct queue from rowlock.jobs where state = 'waiting' and waits_for = 'code' and task = any(:tasks::text[]);
