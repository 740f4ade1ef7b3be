"""Connections to PostgreSQL: the only room that imports a driver."""
