-- Whether this role owns history and events, or may act for who does.
select pg_has_role(relowner, 'usage') from pg_class where oid = 'rowlock.history'::regclass;
