-- Take the turn of a duty that one worker of the fleet has every so often. Returns whether it is ours now, whether there is such
-- a duty, and whether whoever had the last turn has done it. Not ours: another worker has had it lately, or is just taking it.
-- A duty that was begun and not done, because that failed or its worker was killed, is due again after a minute at the latest.
-- One that was begun in the future, because the clock was set back, is due.
with mine as materialized (
    select name
    from rowlock.duties
    where name = :duty
        and not begun_at between
            rowlock.now() - case when done then :every::interval else least(:every::interval, interval '1 minute') end
            and rowlock.now()
    for update skip locked
),
taken as (
    update rowlock.duties set begun_at = rowlock.now(), done = false where name = any(array(select name from mine)) returning name
)
select
    exists (select from taken), exists (select from rowlock.duties where name = :duty),
    coalesce((select done from rowlock.duties where name = :duty), false);
