-- Move the schema's clock to where clock_aim said; it goes on from there. At 0 it is the first migration's own again.
do $$
declare
    ahead numeric := coalesce(nullif(current_setting('rowlock_testing.ahead', true), ''), '0');
begin
    if ahead = 0 then
        create or replace function rowlock.now() returns timestamptz
            language sql stable parallel safe
            return statement_timestamp();
    else
        execute format(
            'create or replace function rowlock.now() returns timestamptz
                language sql stable parallel safe
                return statement_timestamp() + %L::interval',
            ahead || ' seconds'
        );
    end if;
end
$$;
