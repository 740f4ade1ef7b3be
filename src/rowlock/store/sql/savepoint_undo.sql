-- Undo what was done since the savepoint.
rollback to savepoint rowlock;
