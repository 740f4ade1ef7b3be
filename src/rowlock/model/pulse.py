"""What became of jobs from minute to minute, for a small picture."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Minute:
    """Jobs that ended in a minute, and how many of them failed."""

    ended: int = 0
    failed: int = 0


Pulse = tuple[Minute, ...]
"""One minute after the other, the last of them not over yet."""
