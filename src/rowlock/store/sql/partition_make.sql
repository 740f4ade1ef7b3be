-- Make one part of history or events.
select rowlock.make_part(:table, :first::date, :days::integer);
