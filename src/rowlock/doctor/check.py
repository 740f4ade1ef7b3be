"""Check: makes a finding of a figure, a level and words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rowlock.model.checkup import Finding, Level
from rowlock.store.doctor.checkup_facts import Facts
from rowlock.store.stats.collect import LOCKED


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One check of the doctor, which makes its finding."""

    group: str
    name: str

    def green(self, figure: str, says: str, *, value: float | None = None) -> Finding:
        """A finding that all is well."""
        return Finding(self.group, self.name, "green", figure, says, value=value)

    def ill(self, level: Level, figure: str, says: str, *, do: str, value: float | None = None) -> Finding:
        """A finding in amber or red, with what to do."""
        return Finding(self.group, self.name, level, figure, says, do, value)

    def judged(self, level: Level, figure: str, *, well: str, ill: str, do: str, value: float | None = None) -> Finding:
        """A finding of that level, with the words for it."""
        if level == "green":
            return self.green(figure, well, value=value)
        return self.ill(level, figure, ill, do=do, value=value)

    def unknown(self, why: str | None) -> Finding:
        """A finding that could not be made, and why."""
        if why == LOCKED:
            do = "end what holds the lock: see lock waits"
        elif why is not None and why.startswith("took longer"):
            do = "look again when the server is less busy; see lock waits and the oldest snapshot for who is in the way"
        else:
            do = "run as the schema's owner; `grant pg_monitor to` this role for what other sessions do"
        return self.ill("amber", "?", f"unknown: {why or 'PostgreSQL did not say'}", do=do)


def by_bounds(value: float, *, amber: float, red: float) -> Level:
    """The level of a value: amber and red from these bounds on."""
    return "red" if value >= red else "amber" if value >= amber else "green"


def worst(levels: Iterable[Level]) -> Level:
    """The worst of these."""
    found = set(levels)
    return "red" if "red" in found else "amber" if "amber" in found else "green"


def several(names: Sequence[str], *, most: int = 3) -> str:
    """A few names, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def why(facts: Facts, part: str) -> str | None:
    """Why a part could not be learned."""
    if facts.stats is None:
        return facts.unknown.get(part) or facts.unknown.get("stats")
    return facts.unknown.get(part) or facts.stats.unknown.get(part)
