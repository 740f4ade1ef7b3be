"""Settings: a worker's settings, from the call, the environment or a default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from rowlock.db.setting import Setting, check_span, parse_seconds
from rowlock.errors import InvalidOption
from rowlock.model.names import shown
from rowlock.model.spec import DEFAULT_QUEUE
from rowlock.worker.queues import ALL, Queues

_MOST_THREADS: Final = 32


def _parse_queues(text: str) -> Sequence[str] | Mapping[str, float]:
    """`mail,default` is strict: a list. `mail=3,default=1` has weights: a dict."""
    pairs = [part.strip().partition("=") for part in text.split(",")]
    names = [name.strip() for name, _, _ in pairs]
    if not all(names):
        raise InvalidOption(f"{shown(text)} has an empty name; write mail,default or mail=3,default=1")
    if len(set(names)) < len(names):
        raise InvalidOption(f"{shown(text)} names a queue twice")
    if ALL in names and len(names) > 1:
        raise InvalidOption(f"{shown(text)} names '*' and others; write '*' alone for all queues")
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
        raise InvalidOption(f"{shown(text)} is not a whole number; give 1 or more") from None


def _check_count(number: int) -> int:
    if type(number) is not int:
        raise InvalidOption(f"{shown(number)} must be an int, not {type(number).__name__}")
    if number < 1:
        raise InvalidOption(f"{number} is out of range; give 1 or more")
    return number


# A shorter lease could not be renewed in time.
_check_lease = partial(check_span, least=timedelta(seconds=1))
_check_pulse = partial(check_span, least=timedelta(milliseconds=50))
_check_grace = partial(check_span, least=timedelta(0))

QUEUES: Final[Setting[str | Sequence[str] | Mapping[str, float]]] = Setting(
    "queues", "ROWLOCK_QUEUES", (DEFAULT_QUEUE,), _parse_queues, _check_queues
)
SLOTS: Final = Setting("slots", "ROWLOCK_SLOTS", 100, _parse_count, _check_count)
THREADS: Final[Setting[int | None]] = Setting("threads", "ROWLOCK_THREADS", None, _parse_count, _check_count)
LEASE: Final = Setting("lease", "ROWLOCK_LEASE", timedelta(seconds=30), parse_seconds, _check_lease)
RENEW: Final[Setting[timedelta | None]] = Setting("renew", "ROWLOCK_RENEW", None, parse_seconds, _check_pulse)
DEADLINE: Final[Setting[timedelta | None]] = Setting(
    "deadline", "ROWLOCK_WORKER_DEADLINE", None, parse_seconds, _check_pulse
)
GRACE: Final = Setting("grace", "ROWLOCK_GRACE", timedelta(seconds=30), parse_seconds, _check_grace)
PROCESSES: Final = Setting("processes", "ROWLOCK_PROCESSES", 1, _parse_count, _check_count)


def threads_for(slots: int) -> int:
    """How many threads sync handlers get when nobody says."""
    return min(slots, _MOST_THREADS)


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a lease lasts, how often it is renewed, and how long a worker waits for the database."""

    lease: timedelta
    renew: timedelta
    deadline: timedelta

    @classmethod
    def chosen(cls, *, lease: timedelta | None, renew: timedelta | None, deadline: timedelta | None) -> Timing:
        """What was given, else what the environment says, else what follows from the lease; checked against each other.

        A renewal may have to wait for a chore that overruns, then hang, then be tried again; and before the lease is
        over there must be time to stop. Each of the four takes a deadline at most.
        """
        lasts, often, late = LEASE.chosen(lease), RENEW.chosen(renew), DEADLINE.chosen(deadline)
        timing = cls(lasts, often or lasts // 3, late or lasts // 6)
        if timing.needs > lasts:
            least = timing.needs if often and late else max(3 * (often or timedelta(0)), 6 * (late or timedelta(0)))
            raise InvalidOption(
                f"a lease of {_text(lasts)} is too short to be renewed every {_text(timing.renew)} with a deadline of "
                f"{_text(timing.deadline)}: renew + 4 * deadline may not exceed it; make the lease at least "
                f"{_text(least)}, or renew or deadline shorter"
            )
        return timing

    @property
    def needs(self) -> timedelta:
        """The shortest lease that can be kept so."""
        return self.renew + 4 * self.deadline


def _text(span: timedelta) -> str:
    return f"{span.total_seconds():g} s"
