-- The newest migration of the schema, and the oldest code that can use it.
select version, compatible from rowlock.migrations order by version desc limit 1;
