"""What we say to PostgreSQL: statements as values."""
