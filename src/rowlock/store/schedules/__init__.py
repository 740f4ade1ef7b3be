"""Schedules: their statements, and how they are changed, declared and fired."""
