"""The app, and what users hold of it: tasks, jobs, schedules, workflows."""
