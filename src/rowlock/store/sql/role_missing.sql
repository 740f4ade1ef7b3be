-- Which of these roles the server does not have.
select asked.name
from unnest(:roles::text[]) as asked (name)
where not exists (select from pg_roles where rolname = asked.name);
