-- Drop one part of history or events of which everything has expired, as those must who do not own the tables.
select rowlock.drop_part(:table, :first::date, :days::integer);
