-- The key that key_sweep would see to first. For one that cannot be freed, so that it can be left out.
select held.key
from rowlock.keys as held
where held.until <= rowlock.now() and held.key <> all(:without::text[])
order by held.until
limit 1;
