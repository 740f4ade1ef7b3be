"""The embedded server: PostgreSQL started by us, for trials, tests and the demo."""
