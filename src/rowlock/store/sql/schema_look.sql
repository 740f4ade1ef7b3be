-- Whether a table is there, and which schemas names are looked up in.
select pg_catalog.to_regclass(:table) is not null, pg_catalog.current_schemas(true)::pg_catalog.text[];
