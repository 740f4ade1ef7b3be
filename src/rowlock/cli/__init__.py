"""The command line: one file or folder per noun, named as typed."""

from rowlock.cli.program import main

__all__ = ["main"]
