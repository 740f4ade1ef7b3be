-- Write down that somebody has logged in to the dashboard, has logged out, or has failed to: from which address, as which role.
insert into rowlock.events (kind, actor, details)
values (:kind, :actor, json_strip_nulls(json_build_object('from', :address::text, 'role', :role::text)));
