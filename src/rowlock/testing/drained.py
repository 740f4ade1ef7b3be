"""Drained: the report of a drain, attempt by attempt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rowlock.model.outcome import Blocked, Cancelled, Failed, Outcome, Parked, Retried, Snoozed, Succeeded


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt that a drain ran. `error` is what the handler raised, if it did."""

    job: UUID
    task: str
    queue: str
    attempt: int
    outcome: Outcome
    error: BaseException | None

    @property
    def ended(self) -> str:
        """Its outcome in a word: succeeded, failed, cancelled, retried, snoozed or blocked.

        That of a workflow may also be parked, or restarted: it begins again with a fresh history.
        """
        return type(self.outcome).__name__.lower()


@dataclass(frozen=True, slots=True)
class Drained:
    """The report of a drain: its attempts in the order in which they ran, and counts by outcome."""

    attempts: tuple[Attempt, ...]
    expired: int = 0  # how many jobs were cancelled as expired that could not even be claimed: paused, or waiting

    @property
    def succeeded(self) -> int:
        """The number of jobs that succeeded."""
        return self._count(Succeeded)

    @property
    def failed(self) -> int:
        """The number of jobs that failed for good."""
        return self._count(Failed)

    @property
    def cancelled(self) -> int:
        """The number of jobs that ended as cancelled, expired ones included."""
        return self._count(Cancelled) + self.expired

    @property
    def retried(self) -> int:
        """The number of attempts that failed and are retried."""
        return self._count(Retried)

    @property
    def snoozed(self) -> int:
        """The number of attempts that snoozed their job."""
        return self._count(Snoozed)

    @property
    def blocked(self) -> int:
        """The number of jobs that wait now: for code that fits them, or for the end of a pause."""
        return self._count(Blocked)

    @property
    def parked(self) -> int:
        """The number of attempts of workflows that parked: for a time, a signal, a child, or a step's next try."""
        return self._count(Parked)

    @property
    def errors(self) -> tuple[BaseException, ...]:
        """The errors that handlers raised, without snoozes and cancellations of their own."""
        return tuple(one.error for one in self.attempts if one.error is not None)

    def _count(self, kind: type[Any]) -> int:
        return sum(isinstance(one.outcome, kind) for one in self.attempts)

    def __len__(self) -> int:
        return len(self.attempts)

    def __iter__(self) -> Iterator[Attempt]:
        return iter(self.attempts)
