"""One command per file, named as typed."""
