-- Undo the transaction.
rollback;
