"""Charts: the values that static/charts.js draws, and their text for screen readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from rowlock.model.formatting import span
from rowlock.model.stats.series import Point, Series
from rowlock.model.stats.stats import Durations

Unit = Literal["/s", "/min", "s"]
LineStyle = tuple[str, tuple[int, ...]]  # colour and dash
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ChartLine:
    """A line: its colour, by its meaning; its dashes, so that it is known without colour; a value for each step."""

    label: str
    tint: str
    dash: tuple[int, ...]
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over steps of time; `says` is the chart in a sentence."""

    name: str
    title: str
    unit: Unit
    at: tuple[int, ...]  # seconds since 1970
    lines: tuple[ChartLine, ...]
    says: str

    @property
    def data(self) -> dict[str, Any]:
        """The chart as JSON for the browser."""
        return {
            "unit": self.unit,
            "says": self.says,
            "at": self.at,
            "lines": [
                {"label": line.label, "tint": line.tint, "dash": line.dash, "values": line.values}
                for line in self.lines
            ],
        }


def charts(series: Series) -> tuple[Chart, ...]:
    """Throughput, failures, latency and duration. Only whole steps are drawn."""
    points = [point for point in series.points if point.whole]
    return (
        _counts("throughput", "Succeeded", points, series.step, {"succeeded": ("succeeded", ())}),
        _counts("trouble", "Went wrong", points, series.step, {"failed": ("failed", ()), "retried": ("amber", (7, 4))}),
        _times("latency", "From due to start", points, lambda point: point.waits),
        _times("duration", "How long attempts take", points, lambda point: point.durations),
    )


def _counts(name: str, title: str, points: Sequence[Point], step: timedelta, looks: Mapping[str, LineStyle]) -> Chart:
    """Counts per second, or per minute where that is less than one."""
    counts: dict[str, list[int]] = {counted: [getattr(point, counted) for point in points] for counted in looks}
    busiest = max((max(numbers, default=0) for numbers in counts.values()), default=0)
    unit: Unit = "/s" if busiest * timedelta(seconds=1) / step >= 1 else "/min"
    per = step / (timedelta(seconds=1) if unit == "/s" else _MINUTE)
    lines = tuple(
        ChartLine(counted, *looks[counted], tuple(_short(number / per) for number in numbers))
        for counted, numbers in counts.items()
    )
    totals = " and ".join(f"{sum(numbers):,} {counted}" for counted, numbers in counts.items())
    return Chart(name, title, unit, _at(points), lines, f"In all {totals}.")


def _times(name: str, title: str, points: Sequence[Point], of: Callable[[Point], Durations | None]) -> Chart:
    found = [of(point) for point in points]
    seconds = {
        "p50": [None if one is None else one.p50.total_seconds() for one in found],
        "p95": [None if one is None else one.p95.total_seconds() for one in found],
    }
    looks: dict[str, LineStyle] = {"p50": ("running", ()), "p95": ("waiting", (7, 4))}
    lines = tuple(
        ChartLine(share, *looks[share], tuple(None if value is None else _short(value) for value in values))
        for share, values in seconds.items()
    )
    known = [one for one in found if one is not None]
    if not known:
        return Chart(name, title, "s", _at(points), lines, "Nothing was counted.")
    last, worst = known[-1], max(one.p95 for one in known)
    says = f"Last p50 {span(last.p50)}, p95 {span(last.p95)}; the highest p95 was {span(worst)}."
    return Chart(name, title, "s", _at(points), lines, says)


def _at(points: Sequence[Point]) -> tuple[int, ...]:
    return tuple(int(point.at.timestamp()) for point in points)


def _short(number: float) -> float:
    """A number with four digits, as exact as a chart can be read."""
    return float(f"{number:.4g}")
