"""Schedules: rules, their slots, and what operators change."""
