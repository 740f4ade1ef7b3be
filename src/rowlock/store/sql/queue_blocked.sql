-- Queues with jobs that wait for the code of these tasks, which are named as workers name them: NAME, or NAME@VERSION.
select distinct queue
from rowlock.jobs
where state = 'waiting'
    and waits_for = 'code'
    and task = any(array(select split_part(known.name, '@', 1) from unnest(:tasks::text[]) as known (name)));
