"""Whether the database is healthy: `examine` asks, each other file judges a part of what it was told."""
