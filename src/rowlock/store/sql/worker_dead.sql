-- Whether any worker's lease has run out: the cheap look before a rescue.
select exists (select from rowlock.workers where lease <= rowlock.now());
