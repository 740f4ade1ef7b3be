"""Checkup: the doctor's findings, one for each check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

Level = Literal["green", "amber", "red"]

LEVELS: tuple[Level, ...] = ("green", "amber", "red")
"""From well to ill."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a checkup: the figure, what it means, and, unless it is green, what to do.

    Amber works for now, but needs attention, or could not be checked. Red breaks a promise, now or soon.
    """

    group: str
    name: str
    level: Level
    figure: str
    says: str
    do: str | None = None
    value: float | None = None  # the figure as a number, for a monitor that draws it

    def __post_init__(self) -> None:
        if (self.do is None) is not (self.level == "green"):
            raise ValueError(f"{self.name}: what is green needs no remedy, and everything else does")


@dataclass(frozen=True, slots=True)
class Checkup:
    """The result of `app.doctor()`: every finding, green ones too, in the order of the report."""

    at: datetime
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Level:
        """The level of the worst finding."""
        return max((finding.level for finding in self.findings), key=LEVELS.index, default="green")

    def at_level(self, level: Level) -> Iterator[Finding]:
        """The findings of one level."""
        return (finding for finding in self.findings if finding.level == level)

    def __getitem__(self, name: str) -> Finding:
        """The finding of that name: `checkup["fsync"]`."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {
            "at": self.at.isoformat(),
            "worst": self.worst,
            "findings": [asdict(finding) for finding in self.findings],
        }
