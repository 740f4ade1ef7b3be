"""Statements as values: everything that is sent to PostgreSQL."""
