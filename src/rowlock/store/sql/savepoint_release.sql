-- End the part that a savepoint began.
release savepoint rowlock;
