-- Begin a part that can be undone alone; where a driver begins transactions by itself, this begins one.
savepoint rowlock;
