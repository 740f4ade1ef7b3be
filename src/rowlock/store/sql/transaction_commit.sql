-- Commit the transaction.
commit;
