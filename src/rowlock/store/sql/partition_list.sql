-- The partitions of a table and whether an interrupted DETACH waits to be finished (null: detached, but never dropped).
select child.relname, link.inhdetachpending
from pg_class as parent
join pg_class as child
    on child.relnamespace = parent.relnamespace
    and child.relkind = 'r'
    and child.relname ~ ('^' || :table || '_[0-9]{8}w?$')
left join pg_inherits as link on link.inhrelid = child.oid
where parent.oid = ('rowlock.' || :table)::regclass
order by child.relname;
