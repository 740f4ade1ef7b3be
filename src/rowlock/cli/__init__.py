"""The command line: one command per file, named as typed."""

from rowlock.cli.program import main

__all__ = ["main"]
