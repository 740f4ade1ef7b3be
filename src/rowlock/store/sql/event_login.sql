-- Write down that somebody has logged in to the dashboard, has logged out, or has failed to: from which address, as which role.
insert into rowlock.events (kind, actor, details)
select
    case :kind when 'logged_in' then 'logged_in' when 'logged_out' then 'logged_out' else 'login_failed' end,
    :actor,
    json_strip_nulls(json_build_object('from', :address::text, 'role', :role::text));
