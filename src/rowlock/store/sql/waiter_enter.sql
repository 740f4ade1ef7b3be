-- Ask that a listener be notified when these jobs end.
insert into rowlock.waiters (job, listener, at)
select asked.job, :listener::uuid, rowlock.now()
from unnest(:ids::uuid[]) as asked (job)
on conflict do nothing;
