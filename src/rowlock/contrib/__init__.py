"""Frameworks: modules that join Rowlock to one, each loaded by its users alone."""
