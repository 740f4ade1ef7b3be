-- Whether a table is there.
select to_regclass(:table) is not null;
