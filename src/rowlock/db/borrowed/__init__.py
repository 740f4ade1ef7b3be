"""The caller's connection: jobs join its transaction."""
