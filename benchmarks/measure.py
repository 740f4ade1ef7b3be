"""What a benchmark measures, how rounds take turns, and what counts as met."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isinf
from statistics import median
from typing import Protocol, TypeVar

T = TypeVar("T")


class Broken(Exception):
    """There is no figure to report: something that a benchmark needs did not work, or did not do its work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much to measure."""

    quick: bool = False
    size: int | None = None
    rounds: int | None = None

    def sized(self, *, full: int, quick: int) -> int:
        """How many jobs, or whatever the scenario counts."""
        return self.size or (quick if self.quick else full)

    def repeated(self, *, full: int, quick: int) -> int:
        """How many rounds."""
        return self.rounds or (quick if self.quick else full)


class Track(Protocol):
    """Somebody who wants to know how far we are."""

    def begin(self, steps: int) -> None:
        """So many steps are to come."""

    def step(self, words: str) -> None:
        """The next one begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Bounds on Rowlock's figure and on its ratio to the limit; None is no bound."""

    at_least: float | None = None
    at_most: float | None = None
    ratio_at_least: float | None = None
    ratio_at_most: float | None = None

    def met(self, case: Case) -> bool:
        """Whether a case lies within the bounds."""
        return (
            (self.at_least is None or case.rowlock >= self.at_least)
            and (self.at_most is None or case.rowlock <= self.at_most)
            and (self.ratio_at_least is None or case.ratio >= self.ratio_at_least)
            and (self.ratio_at_most is None or case.ratio <= self.ratio_at_most)
        )

    def facts(self) -> dict[str, float]:
        """The bounds that there are."""
        bounds = {
            "at_least": self.at_least,
            "at_most": self.at_most,
            "ratio_at_least": self.ratio_at_least,
            "ratio_at_most": self.ratio_at_most,
        }
        return {name: bound for name, bound in bounds.items() if bound is not None}

    def __str__(self) -> str:
        return ", ".join(
            filter(
                None, [_range(self.at_least, self.at_most), _range(self.ratio_at_least, self.ratio_at_most, "ratio ")]
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One measured case: Rowlock's figure and the limit's, each from several rounds."""

    scenario: str
    case: str
    unit: str
    rowlock_rounds: Sequence[float]
    limit_rounds: Sequence[float]
    limit_is: str
    target: Target | None = None
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def rowlock(self) -> float:
        """The median of Rowlock's rounds."""
        return median(self.rowlock_rounds)

    @property
    def limit(self) -> float:
        """The median of the limit's rounds."""
        return median(self.limit_rounds)

    @property
    def ratio(self) -> float:
        """Rowlock's median over the limit's; without end where too little was measured for the limit to be seen."""
        return self.rowlock / self.limit if self.limit else inf

    @property
    def met(self) -> bool | None:
        """Whether the target was met; None without one."""
        return None if self.target is None else self.target.met(self)

    def facts(self) -> dict[str, object]:
        """Everything, for machines."""
        return {
            "scenario": self.scenario,
            "case": self.case,
            "rowlock": round(self.rowlock, 4),
            "limit": round(self.limit, 4),
            "ratio": _rounded(self.ratio),
            "unit": self.unit,
            "limit_is": self.limit_is,
            "target": None if self.target is None else self.target.facts(),
            "met": self.met,
            "rounds": len(self.rowlock_rounds),
            "spread": {
                "rowlock": _rounded(spread(self.rowlock_rounds)),
                "limit": _rounded(spread(self.limit_rounds)),
            },
            **self.details,
        }


def _rounded(figure: float) -> float | None:
    """As JSON has it, which knows no infinity."""
    return None if isinf(figure) else round(figure, 4)


def _range(low: float | None, high: float | None, what: str = "") -> str:
    if low is not None and high is not None:
        return f"{what}{low:,g} to {high:,g}"
    if low is not None:
        return f"{what}≥ {low:,g}"
    return "" if high is None else f"{what}≤ {high:,g}"


def spread(figures: Sequence[float]) -> float:
    """From the lowest to the highest, as a share of the median: under 0.1 is a quiet machine."""
    middle = median(figures)
    return (max(figures) - min(figures)) / middle if middle else inf


def interleave(sides: Mapping[str, Callable[[], T]], *, rounds: int, track: Track) -> dict[str, list[T]]:
    """Measure each side once per round, in turns, so that a slow minute of the machine's falls on all of them."""
    figures: dict[str, list[T]] = {name: [] for name in sides}
    track.begin(rounds * len(sides))
    for number in range(rounds):
        # There and back again: whoever came first in one round comes last in the next.
        for name in list(sides)[:: 1 if number % 2 == 0 else -1]:
            track.step(f"round {number + 1} of {rounds}: {name}")
            figures[name].append(sides[name]())
    return figures


def percentile(figures: Sequence[float], share: float) -> float:
    """The figure that so large a share of them does not exceed."""
    ranked = sorted(figures)
    return ranked[min(len(ranked) - 1, int(len(ranked) * share))]
