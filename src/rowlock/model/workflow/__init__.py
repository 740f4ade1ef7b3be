"""Workflows: their steps, their records as people read them, and forms for signals."""
