"""Retry: whether a failed attempt is tried again, and after which delay."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from rowlock.errors import InvalidOption
from rowlock.model.names import MAX_ATTEMPTS, check_attempts, shown

_LONGEST: Final = timedelta(days=365)

On = type[BaseException] | tuple[type[BaseException], ...] | Callable[[BaseException], object] | None


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry policy. As it stands: 10 attempts, 2, 4, 8 … seconds apart but at most 15 minutes, up to a quarter more.

    The n-th wait is base · factorⁿ: the first one is `base` times `factor`.

    `on` says which errors are worth another attempt: exception types, or a function of the error; None means all.
    """

    attempts: int = 10
    base: timedelta = timedelta(seconds=1)
    factor: float = 2.0
    cap: timedelta = timedelta(minutes=15)
    jitter: float = 0.25
    on: On = None

    def __post_init__(self) -> None:
        check_attempts(self.attempts)
        _check_span("base", self.base)
        _check_span("cap", self.cap)
        _check_number("factor", self.factor, least=1.0, most=1000.0, hint="2.0 doubles the delay each time")
        _check_number("jitter", self.jitter, least=0.0, most=1.0, hint="0.25 adds up to a quarter")
        _check_on(self.on)

    @classmethod
    def none(cls) -> Retry:
        """A policy of one attempt, without retries."""
        return cls(attempts=1)

    def delay(self, failures: int, random: Callable[[], float]) -> timedelta:
        """The wait after so many failures: base · factorⁿ, at most cap, plus up to jitter of that.

        `random` gives a number from 0 to 1. The sum never overflows, whatever the count.
        """
        return self._backoff(failures) * (1.0 + self.jitter * _unit(random()))

    def wants(self, error: BaseException) -> bool:
        """Whether this error is worth another attempt.

        A function that raises, whatever it raises, counts as yes, and leaves a note on the error that it was given: a
        fault in the policy must not lose the job, and must be seen.
        """
        if self.on is None:
            return True
        if isinstance(self.on, (type, tuple)):
            return isinstance(error, self.on)
        try:
            return bool(self.on(error))
        except BaseException as fault:  # the function is the user's: it may not cancel, snooze or exit
            with suppress(Exception):
                error.add_note(f"Retry(on=…) raised {type(fault).__name__} when asked about this error; it is retried")
            return True

    def _backoff(self, failures: int) -> timedelta:
        if self.base >= self.cap or not self.base:
            return min(self.base, self.cap)
        count = min(max(failures, 0), MAX_ATTEMPTS)
        growth = math.log(self.factor)
        # Compared as exponents: 2.0 ** count overflows from 1,024 on.
        if growth and count >= math.log(self.cap / self.base) / growth:
            return self.cap
        return min(self.base * self.factor**count, self.cap)


def _unit(number: float) -> float:
    return min(max(number, 0.0), 1.0) if math.isfinite(number) else 1.0


def _check_span(name: str, value: timedelta) -> None:
    if not isinstance(value, timedelta):
        raise InvalidOption(
            f"Retry({name}=…) must be a timedelta, not {type(value).__name__}; write timedelta(seconds=…)"
        )
    if not timedelta(0) <= value <= _LONGEST:
        raise InvalidOption(f"Retry({name}={value}) is out of range; use zero to {_LONGEST.days} days")


def _check_number(name: str, value: float, *, least: float, most: float, hint: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidOption(f"Retry({name}=…) must be a number, not {type(value).__name__}; {hint}")
    if not least <= value <= most:  # nor is NaN
        raise InvalidOption(f"Retry({name}={shown(value)}) is out of range; use {least} to {most}: {hint}")


def _check_on(on: On) -> None:
    kinds: tuple[object, ...] = on if isinstance(on, tuple) else (on,) if isinstance(on, type) else ()
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise InvalidOption(f"Retry(on=…) has {kind!r}, which is not an exception type; use types such as OSError")
    if not (on is None or isinstance(on, tuple) or callable(on)):
        raise InvalidOption("Retry(on=…) must be exception types or a function of the error; write on=OSError")
