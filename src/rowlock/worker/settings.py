"""A worker's settings: what each may be, and where it comes from when nobody says: the environment, else a default."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final, Generic, TypeVar

from rowlock.errors import InvalidOption
from rowlock.model.names import shown
from rowlock.model.spec import DEFAULT_QUEUE
from rowlock.worker.lanes import Queues

T = TypeVar("T")

_LONGEST: Final = timedelta(days=365)
_MOST_THREADS: Final = 32


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """One setting: how a text becomes its value, and what a value must be. Both refuse without saying whose it is."""

    name: str
    variable: str
    default: T
    parse: Callable[[str], T]
    check: Callable[[Any], T]

    def read(self, text: str) -> T:
        """The value of a text."""
        return self.check(self.parse(text))

    def chosen(self, given: T | None) -> T:
        """What was given, else what the environment says, else the default."""
        text = os.environ.get(self.variable)
        if given is not None:
            return self._blaming(f"{self.name}=", partial(self.check, given))
        return self._blaming(f"${self.variable}=", partial(self.read, text)) if text else self.default

    @staticmethod
    def _blaming(source: str, value: Callable[[], T]) -> T:
        try:
            return value()
        except InvalidOption as fault:
            raise InvalidOption(f"{source}{fault}") from None


def _parse_queues(text: str) -> Sequence[str] | Mapping[str, float]:
    """`mail,default` is strict: a list. `mail=3,default=1` has weights: a dict."""
    pairs = [part.strip().partition("=") for part in text.split(",")]
    names = [name.strip() for name, _, _ in pairs]
    if not all(names):
        raise InvalidOption(f"{shown(text)} has an empty name; write mail,default or mail=3,default=1")
    if len(set(names)) < len(names):
        raise InvalidOption(f"{shown(text)} names a queue twice")
    if not any(equals for _, equals, _ in pairs):
        return names
    try:
        return {name.strip(): float(weight) for name, _, weight in pairs}
    except ValueError:
        raise InvalidOption(f"{shown(text)}: give every queue a weight, or none; write mail=3,default=1") from None


def _check_queues(queues: str | Sequence[str] | Mapping[str, float]) -> Sequence[str] | Mapping[str, float]:
    several = [queues] if isinstance(queues, str) else queues
    Queues(several)
    return several


def _parse_count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidOption(f"{shown(text)} is no whole number; give 1 or more") from None


def _check_count(number: int) -> int:
    if type(number) is not int:
        raise InvalidOption(f"{shown(number)} must be an int, not {type(number).__name__}")
    if number < 1:
        raise InvalidOption(f"{number} is out of range; give 1 or more")
    return number


def _parse_seconds(text: str) -> timedelta:
    try:
        seconds = float(text)
    except ValueError:
        raise InvalidOption(f"{shown(text)} is no number; give seconds, such as 30 or 0.5") from None
    if not math.isfinite(seconds) or abs(seconds) > _LONGEST.total_seconds():
        raise InvalidOption(f"{shown(text)} is out of range; give seconds, a year of them at most")
    return timedelta(seconds=seconds)


def _check_span(span: timedelta, *, least: timedelta) -> timedelta:
    if not isinstance(span, timedelta):
        raise InvalidOption(f"{shown(span)} must be a timedelta; write timedelta(seconds=…)")
    if not least <= span <= _LONGEST:
        raise InvalidOption(f"{span} is out of range; give {least.total_seconds():g} seconds to a year")
    return span


# A shorter lease could not be renewed in time.
_check_lease = partial(_check_span, least=timedelta(seconds=1))
_check_grace = partial(_check_span, least=timedelta(0))

QUEUES: Final[Setting[str | Sequence[str] | Mapping[str, float]]] = Setting(
    "queues", "ROWLOCK_QUEUES", (DEFAULT_QUEUE,), _parse_queues, _check_queues
)
SLOTS: Final = Setting("slots", "ROWLOCK_SLOTS", 100, _parse_count, _check_count)
THREADS: Final[Setting[int | None]] = Setting("threads", "ROWLOCK_THREADS", None, _parse_count, _check_count)
LEASE: Final = Setting("lease", "ROWLOCK_LEASE", timedelta(seconds=30), _parse_seconds, _check_lease)
GRACE: Final = Setting("grace", "ROWLOCK_GRACE", timedelta(seconds=30), _parse_seconds, _check_grace)
PROCESSES: Final = Setting("processes", "ROWLOCK_PROCESSES", 1, _parse_count, _check_count)


def threads_for(slots: int) -> int:
    """How many threads sync handlers get when nobody says."""
    return min(slots, _MOST_THREADS)
