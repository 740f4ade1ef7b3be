-- Take the turn of a duty that comes round every so often; false: another worker has had it lately, or is just taking it.
-- One that was done in the future, because the clock was set back, is due.
with mine as materialized (
    select name
    from rowlock.duties
    where name = :duty and not done_at between rowlock.now() - :every::interval and rowlock.now()
    for update skip locked
),
taken as (
    update rowlock.duties set done_at = rowlock.now() where name = any(array(select name from mine)) returning name
)
select exists (select from taken), exists (select from rowlock.duties where name = :duty);
