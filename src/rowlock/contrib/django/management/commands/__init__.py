"""Commands: one per file, named as typed."""
