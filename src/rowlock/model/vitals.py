"""Vitals: whether a worker renews its lease, and whether its event loop turns."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, NamedTuple

from rowlock.model.words import span

Health = Literal["live", "late", "blocked", "dead"]


class Vitals(NamedTuple):
    """What is left of a worker's lease, how long one is, and for how long its event loop was blocked, by what."""

    lease_left: timedelta
    lasts: timedelta
    blocked: timedelta | None
    blocked_by: str | None

    @property
    def silent(self) -> timedelta:
        """How long ago it last renewed its lease."""
        return self.lasts - self.lease_left

    @property
    def health(self) -> Health:
        """Workers renew after a third of a lease: with less than half of it left, one has missed a renewal."""
        if self.lease_left <= timedelta(0):
            return "dead"
        if self.lease_left < self.lasts / 2:
            return "late"
        return "live" if self.blocked is None else "blocked"

    @property
    def says(self) -> str | None:
        """What is wrong with one whose lease still runs, in words that go on after its name."""
        match self.health:
            case "late":
                return (
                    f"has not renewed its lease for {span(self.silent)}: its process is stopped, its machine sleeps, "
                    f"or it cannot reach the database; if it stays so, its jobs are rescued in {span(self.lease_left)}"
                )
            case "blocked":
                by = self.blocked_by or "something that is no job"
                length = span(self.blocked or timedelta(0))
                return (
                    f"had its event loop blocked for {length} by {by} when it last renewed its lease, "
                    f"{span(self.silent)} ago: until the loop is free, nothing else of it runs and it claims nothing"
                )
            case _:
                return None
