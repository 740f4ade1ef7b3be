"""Version: the installed release of Rowlock."""

from __future__ import annotations

from importlib.metadata import version

__version__ = version("rowlock")
