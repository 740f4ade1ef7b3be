"""Gantt: the bars of a workflow's steps on a time axis.

Times in which nothing but waits went on are cut short where they would leave no room for the work: an order that was
packed for a second and waited for a week is a second of work all the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Final, Literal

from rowlock.model.formatting import span
from rowlock.model.workflow.timeline import TimelineStep

PartStyle = Literal["done", "failed", "tried", "sleep", "wait", "over", "child", "undo", "branch", "running", "mark"]

# What is drawn as work; the rest is waiting.
_WORK: Final = frozenset(("step", "transaction", "undo", "child"))
# Below this share of the whole, work is drawn larger than it was; what is cut then has at most this share of the width.
_LEAST_WORK: Final = 0.25
_MOST_CUT: Final = 0.4
# A gap of less than this share of the whole is left as it is: a thousand steps have as many of them.
_LEAST_CUT: Final = 0.03
_MOST_TRIES_DRAWN: Final = 12
# Seconds between two marks of the axis, and how many there are to be at most.
_STEPS: Final = tuple(
    base * unit
    for unit, bases in ((0.001, (1, 2, 5, 10, 20, 50, 100, 200, 500)), (1, (1, 2, 5, 10, 20, 30)))
    for base in bases
) + tuple(
    base * unit
    for unit, bases in ((60, (1, 2, 5, 10, 20, 30)), (3600, (1, 2, 4, 6, 12)), (86_400, (1, 2, 7, 14, 30, 90, 365)))
    for base in bases
)
_MOST_TICKS: Final = 6
_APART: Final = 9.0  # percent between two labels


@dataclass(frozen=True, slots=True)
class BarPart:
    """A part of a bar: how it looks, where it begins and how wide it is."""

    look: PartStyle
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on the axis: the time since the beginning."""

    x: float
    words: str


@dataclass(frozen=True, slots=True)
class AxisBreak:
    """A time that is drawn shorter than it was, and how long it was."""

    x: float
    width: float
    words: str


class TimeAxis:
    """The time axis: a piecewise linear scale from instants to places."""

    def __init__(self, begin: datetime, end: datetime, work: Iterable[tuple[datetime, datetime]] = ()) -> None:
        self._begin = begin
        whole = max((end - begin).total_seconds(), 0.001)
        self._points = [(0.0, 0.0), (whole, 100.0)]
        busy = _joined([(self._since(start), self._since(stop)) for start, stop in work], whole)
        worked = sum(stop - start for start, stop in busy)
        is_cut = 0 < worked < whole * _LEAST_WORK
        self.cuts = self._fit(busy, whole, worked) if is_cut else ()
        self.ticks = tuple(self._ticks(busy if self.cuts else [(0.0, whole)]))

    def _since(self, moment: datetime) -> float:
        return (moment - self._begin).total_seconds()

    def _fit(self, busy: Sequence[tuple[float, float]], whole: float, worked: float) -> tuple[AxisBreak, ...]:
        """Give work its room, and gaps no more than their share; returns the gaps that are cut."""
        edges = [0.0, *(edge for piece in busy for edge in piece), whole]
        gaps = [(edges[at], edges[at + 1]) for at in range(0, len(edges), 2)]
        long = [gap for gap in gaps if gap[1] - gap[0] > 0]
        most = worked / (1 - _MOST_CUT) * _MOST_CUT / max(len(long), 1)
        sizes = [min(after - before, most) if at % 2 == 0 else after - before for at, (before, after) in _pairs(edges)]
        scale = 100 / sum(sizes)
        place, self._points, cuts = 0.0, [(0.0, 0.0)], []
        for (at, (before, after)), size in zip(_pairs(edges), sizes, strict=True):
            if at % 2 == 0 and after - before > size:
                cuts.append(AxisBreak(place, size * scale, span(timedelta(seconds=after - before))))
            place += size * scale
            self._points.append((after, place))
        return tuple(cuts)

    def x(self, moment: datetime) -> float:
        """The place of an instant; one outside of the axis is at its edge."""
        seconds = min(max(self._since(moment), 0.0), self._points[-1][0])
        at = min(max(bisect_right(self._points, (seconds, float("inf"))), 1), len(self._points) - 1)
        (before, low), (after, high) = self._points[at - 1], self._points[at]
        return low if after <= before else low + (high - low) * (seconds - before) / (after - before)

    def _ticks(self, busy: Sequence[tuple[float, float]]) -> Iterable[Tick]:
        """Marks at round numbers where there is room; none in a break, which shows its length instead."""
        shown = sum(stop - start for start, stop in busy)
        step = next((step for step in _STEPS if shown / step <= _MOST_TICKS), _STEPS[-1])
        taken = [cut.x + cut.width / 2 for cut in self.cuts]
        for start, stop in busy:
            for count in range(ceil(start / step), int(stop / step) + 1)[:_MOST_TICKS]:
                place = self.x(self._begin + timedelta(seconds=count * step))
                if place <= 100 - _APART / 2 and all(abs(place - other) >= _APART for other in taken):
                    taken.append(place)
                    yield Tick(place, _mark(count * step))

    def piece(self, look: PartStyle, begin: datetime, end: datetime) -> BarPart:
        """A bar from one instant to another."""
        left, right = self.x(begin), self.x(end)
        return BarPart(look, left, max(right - left, 0.0))


def _mark(seconds: float) -> str:
    """The time since the beginning, unrounded: rounded, neighbours would read the same."""
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms" if seconds else "0"
    parts, left = list[str](), round(seconds, 3)
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        whole = int(left // size) if unit != "s" else round(left, 3)
        left -= whole * size
        if whole:
            parts.append(f"{whole:g} {unit}")
    return " ".join(parts)


def work_of(steps: Iterable[TimelineStep], now: datetime) -> list[tuple[datetime, datetime]]:
    """Times of work rather than waits. They include the time between tries, as only the tries' number is known."""
    return [
        (step.started_at, step.ended_at or now) for step in steps if step.kind in _WORK and step.state != "retrying"
    ]


def bar_parts(step: TimelineStep, scale: TimeAxis, end: datetime) -> tuple[BarPart, ...]:
    """A step's bar. Only the number of its tries is recorded: they are drawn as equal parts of its time."""
    whole = scale.piece(_style(step), step.started_at, step.ended_at or end)
    tries = min(step.attempts, _MOST_TRIES_DRAWN) if step.kind != "start" else 0
    if not tries or step.kind in ("signal", "sleep"):
        return (whole,)
    parts = tries if step.state == "failed" else tries + 1
    each = whole.width / parts
    tried = (BarPart("tried", whole.x + at * each, each) for at in range(parts - 1))
    return (*tried, BarPart(whole.look, whole.x + (parts - 1) * each, each))


def _style(step: TimelineStep) -> PartStyle:
    if step.kind in ("now", "patched", "start", "failure"):
        return "mark"  # the last of them is that of a cancelled workflow, too: its end is shown before its name
    if step.state == "failed":
        return "over" if step.kind == "signal" else "failed"
    if step.kind == "any":
        return "mark"
    by_kind: dict[str, PartStyle] = {"sleep": "sleep", "signal": "wait", "child": "child", "undo": "undo"}
    return by_kind.get(step.kind, "tried" if step.state == "retrying" else "done")


def _joined(spans: Iterable[tuple[float, float]], whole: float) -> list[tuple[float, float]]:
    """Spans that overlap, or follow each other closely, as one."""
    joined: list[tuple[float, float]] = []
    for start, stop in sorted(spans):
        low, high = min(max(start, 0.0), whole), min(max(stop, 0.0), whole)
        if joined and low - joined[-1][1] <= whole * _LEAST_CUT:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        elif high > low:
            joined.append((low, high))
    return joined


def _pairs(edges: Sequence[float]) -> list[tuple[int, tuple[float, float]]]:
    """Between every two edges: the even ones are gaps, the odd ones work."""
    return [(at, (edges[at], edges[at + 1])) for at in range(len(edges) - 1)]
