"""Worker: claims, runs and settles jobs."""
