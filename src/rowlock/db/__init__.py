"""Who says it to PostgreSQL: the only room that imports a driver."""
