-- Settings of these names: as a session of this role has them before anybody sets anything in it, and where that is said.
select name, coalesce(reset_val, setting), source from pg_settings where name = any(:names::text[]);
