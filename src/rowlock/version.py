"""Which Rowlock this is."""

from __future__ import annotations

from importlib.metadata import version

__version__ = version("rowlock")
