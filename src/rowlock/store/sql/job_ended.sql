-- Which of these jobs are in history already.
select id from rowlock.history where id = any(:ids::uuid[]);
