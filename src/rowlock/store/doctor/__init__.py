"""Doctor: what is read from a database, and what is tried on it, for a checkup."""
