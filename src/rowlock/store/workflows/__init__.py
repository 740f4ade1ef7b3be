"""Workflows: their statements, steps, signals and timelines."""
