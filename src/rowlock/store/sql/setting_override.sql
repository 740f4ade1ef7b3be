-- What is said for single roles, or for this database, of the settings of these names. No role means all of them.
select role.rolname::text, split_part(said.line, '=', 1), substr(said.line, strpos(said.line, '=') + 1)
from pg_db_role_setting as setting
cross join unnest(setting.setconfig) as said (line)
left join pg_roles as role on role.oid = setting.setrole
where setting.setdatabase = any(array(select 0::oid union all select oid from pg_database where datname = current_database()))
    and split_part(said.line, '=', 1) = any(:names::text[])
order by 1, 2;
