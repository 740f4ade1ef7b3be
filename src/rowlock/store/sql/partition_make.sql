-- Make one part of history or events.
select rowlock.add_partition(:table, :part, :first::date, :after::date);
