-- What operators have set for queues.
select name, extract(epoch from keep_succeeded)::float8, extract(epoch from keep_failed)::float8,
    extract(epoch from keep_cancelled)::float8
from rowlock.queues;
