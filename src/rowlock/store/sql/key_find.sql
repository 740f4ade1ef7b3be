-- Who holds these keys.
select key, task, job from rowlock.keys where key = any(:keys::text[]);
