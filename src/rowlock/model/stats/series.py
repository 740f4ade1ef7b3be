"""Series: what workers did, step by step, for charts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from rowlock.errors import InvalidOption
from rowlock.model.plain import Plain
from rowlock.model.stats.stats import Durations

_MINUTE = timedelta(minutes=1)
# Minutes are kept for so long.
LONGEST = timedelta(days=1)
# Up to such a span, steps are so long: 120, 144 and 144 points at most.
_STEPS = {timedelta(hours=2): _MINUTE, timedelta(hours=12): timedelta(minutes=5), LONGEST: timedelta(minutes=10)}


@dataclass(frozen=True, slots=True)
class Point:
    """One step of a series: what workers did from `at` on. If it is not `whole`, not all is counted yet."""

    at: datetime
    whole: bool
    claimed: int = 0
    succeeded: int = 0
    failed: int = 0  # jobs that failed for good
    cancelled: int = 0
    retried: int = 0  # attempts that failed and will be made again
    durations: Durations | None = None  # of attempts that returned or raised; None when there was none
    waits: Durations | None = None  # how long claimed jobs had been due; None when none was claimed


@dataclass(frozen=True, slots=True)
class Series(Plain):
    """The result of `app.rates()`: a point for every step, the oldest first and none left out, the last one now.

    With `cut` it begins later than was asked for: the fleet is so large that only its newest minutes are looked at.
    """

    at: datetime
    step: timedelta
    points: tuple[Point, ...]
    cut: bool = False


def check_span(span: timedelta) -> timedelta:
    """How far back a series may look."""
    if not isinstance(span, timedelta):
        raise InvalidOption(f"span={span!r} is not a timedelta; say timedelta(hours=1)")
    if not _MINUTE <= span <= LONGEST:
        raise InvalidOption(f"span={span!r} is out of range; minutes are kept for a day, so use a minute to a day")
    return span


def check_step(step: timedelta | None, span: timedelta) -> timedelta:
    """How long a step of a series over this span is; unless it is given, so that there are 144 at most."""
    if step is None:
        return next(fit for longest, fit in _STEPS.items() if span <= longest)
    if not isinstance(step, timedelta):
        raise InvalidOption(f"step={step!r} is not a timedelta; say timedelta(minutes=5)")
    if not _MINUTE <= step <= span or step % _MINUTE:
        raise InvalidOption(
            f"step={step!r} is out of range; use whole minutes, from one to the span, which is {span!r}"
        )
    return step
