-- The rights in our schema of everybody but its owners, parts of history and events included; no grantee is PUBLIC.
with home as materialized (
    select relnamespace as oid from pg_class where oid = 'rowlock.migrations'::regclass
),
granted as (
    select 'schema' as kind, nspname::text as name, '' as part, nspowner as owner, coalesce(nspacl, acldefault('n', nspowner)) as acl
    from pg_namespace
    where oid = (select oid from home)
    union all
    select 'table', relname::text, '', relowner, coalesce(relacl, acldefault('r', relowner))
    from pg_class
    where relnamespace = (select oid from home) and relkind in ('r', 'p', 'v', 'S')
    union all
    select 'table', relname::text, attname::text, relowner, attacl
    from pg_class
    join pg_attribute on attrelid = pg_class.oid
    where relnamespace = (select oid from home) and relkind in ('r', 'p', 'v') and attacl is not null and not attisdropped
    union all
    select 'function', proname::text, '', proowner, coalesce(proacl, acldefault('f', proowner))
    from pg_proc
    where pronamespace = (select oid from home)
)
select role.rolname::text, granted.kind, granted.name, granted.part, lower(entry.privilege_type)
from granted
cross join lateral aclexplode(granted.acl) as entry
left join pg_roles as role on role.oid = entry.grantee
where entry.grantee <> granted.owner
order by 1, 2, 3, 4, 5;
