-- Describe everything in our schema but parts of history and events, in the words of migrations/schema.sql; `sound` says of
-- an index whether it is used and kept up.
with home as materialized (
    select relnamespace as oid from pg_class where oid = 'rowlock.migrations'::regclass
),
tables as materialized (
    select class.oid, class.relname::text as name, class.relkind, class.relpersistence
    from pg_class as class
    where class.relnamespace = (select oid from home) and class.relkind in ('r', 'p') and not class.relispartition
)
select 'table' as kind, tables.name as home, tables.name, coalesce(pg_get_partkeydef(tables.oid), '') as said, true as sound
from tables
union all
select
    'column', tables.name, part.attname::text,
    concat(
        part.attname, ' ', format_type(part.atttypid, part.atttypmod), case when part.attnotnull then ' not null' end,
        ' default ' || pg_get_expr(preset.adbin, preset.adrelid)
    ),
    true
from tables
join pg_attribute as part on part.attrelid = tables.oid and part.attnum > 0 and not part.attisdropped
left join pg_attrdef as preset on preset.adrelid = part.attrelid and preset.adnum = part.attnum
union all
select
    'constraint', tables.name, rule.conname::text, concat('constraint ', rule.conname, ' ', pg_get_constraintdef(rule.oid)),
    rule.convalidated
from tables
join pg_constraint as rule on rule.conrelid = tables.oid and rule.contype <> 'n'
union all
select 'index', tables.name, class.relname::text, pg_get_indexdef(link.indexrelid), link.indisvalid and link.indisready
from tables
join pg_index as link on link.indrelid = tables.oid
join pg_class as class on class.oid = link.indexrelid
union all
select 'trigger', tables.name, tgname::text, tgname::text, true
from tables
join pg_trigger on tgrelid = tables.oid and not tgisinternal
union all
select
    'function', proname::text, proname::text, pg_get_functiondef(pg_proc.oid),
    not prosecdef or coalesce('search_path=pg_catalog, pg_temp' = any(proconfig), false)
from pg_proc
where pronamespace = (select oid from home) and prokind = 'f';
