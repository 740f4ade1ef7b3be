-- The policies on events, if they are in force.
select policy.polname::text
from pg_policy as policy
join pg_class as class on class.oid = policy.polrelid
where policy.polrelid = 'rowlock.events'::regclass and class.relrowsecurity
order by 1;
