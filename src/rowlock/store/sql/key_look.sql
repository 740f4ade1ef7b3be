-- Whose a key is, and until when at least, if it has a period.
select job, until from rowlock.keys where key = :key;
