-- The partitions of a table, the bound each ends at, and whether an interrupted DETACH waits to be finished.
select child.relname, (regexp_match(pg_get_expr(child.relpartbound, child.oid), $$TO \('([^']+)'\)$$))[1], link.inhdetachpending
from pg_inherits as link
join pg_class as child on child.oid = link.inhrelid
where link.inhparent = ('rowlock.' || :table)::regclass
order by child.relname;
