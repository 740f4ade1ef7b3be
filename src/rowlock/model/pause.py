"""Pauses: of queues and tasks by operators, of failing tasks by breakers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from rowlock.errors import InvalidOption
from rowlock.model.names import shown
from rowlock.model.plain import Plain

MOST_FAILURES: Final = 1_000
_LONGEST: Final = timedelta(days=365)
_UNITS: Final = (
    ("day", timedelta(days=1)),
    ("hour", timedelta(hours=1)),
    ("minute", timedelta(minutes=1)),
    ("second", timedelta(seconds=1)),
)


@dataclass(frozen=True, slots=True)
class Pause(Plain):
    """A pause of a queue or of a task: since `at`, `by` whom and `why`; it ends by itself at `until`, if given."""

    queue: str | None
    task: str | None
    until: datetime | None
    why: str | None
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """A circuit breaker: when so many attempts of a task have failed within a `window`, on all workers, it is paused.

    It goes on by itself after `pause`, or when somebody resumes it.
    """

    failures: int = 20
    window: timedelta = timedelta(minutes=1)
    pause: timedelta = timedelta(minutes=5)

    def __post_init__(self) -> None:
        if type(self.failures) is not int:
            raise InvalidOption(f"Breaker(failures=…) must be an int, not {type(self.failures).__name__}")
        if not 1 <= self.failures <= MOST_FAILURES:
            raise InvalidOption(
                f"Breaker(failures={shown(self.failures)}) is out of range; use 1 (the first one) to {MOST_FAILURES:,}"
            )
        _check_span("window", self.window)
        _check_span("pause", self.pause)

    def why(self, error: str) -> str:
        """The reason of the pause, in words; `error` is the type of the last failure."""
        return f"breaker: {_counted(self.failures, 'failure')} within {_words(self.window)}, the last: {error}"


def _check_span(name: str, value: timedelta) -> None:
    if not isinstance(value, timedelta):
        raise InvalidOption(
            f"Breaker({name}=…) must be a timedelta, not {type(value).__name__}; write timedelta(minutes=…)"
        )
    if not timedelta(0) < value <= _LONGEST:
        raise InvalidOption(f"Breaker({name}={value}) is out of range; use more than zero, up to {_LONGEST.days} days")


def _words(span: timedelta) -> str:
    """`90 minutes`, `1 day`: in the largest unit of which it is a whole number."""
    for unit, length in _UNITS:
        if not span % length:
            return _counted(span // length, unit)
    return f"{span / timedelta(seconds=1):g} seconds"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
