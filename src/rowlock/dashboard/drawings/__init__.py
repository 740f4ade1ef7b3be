"""Drawings: charts, a workflow's Gantt chart, a job's life and tracebacks, as values."""
