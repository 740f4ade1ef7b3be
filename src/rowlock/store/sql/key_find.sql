-- Who holds these keys; a holder that is just ending may have no queue any more.
select key, task, job, (select job.queue from rowlock.jobs as job where job.id = keys.job)
from rowlock.keys
where key = any(:keys::text[]);
