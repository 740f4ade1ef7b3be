-- Say where the clock is to go, for clock_move: on by an interval, to an instant, or to a number of seconds ahead of the
-- server's own; returns how many seconds ahead it is now. In a setting, because a DO takes no parameters.
select
    extract(epoch from rowlock.now() - statement_timestamp())::text as ahead,
    set_config(
        'rowlock_testing.ahead',
        coalesce(
            :ahead::numeric,
            extract(epoch from :to::timestamptz - statement_timestamp()),
            extract(epoch from rowlock.now() - statement_timestamp()) + extract(epoch from :by::interval)
        )::text,
        true
    );
