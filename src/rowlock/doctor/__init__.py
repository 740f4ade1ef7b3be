"""Doctor: whether the database is healthy; `examine` gathers facts, the other files judge them."""
