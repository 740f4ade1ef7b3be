-- Begin a transaction where none is open.
begin;
