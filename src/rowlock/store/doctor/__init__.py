"""Doctor: what a checkup reads from a database, and tries on it."""
