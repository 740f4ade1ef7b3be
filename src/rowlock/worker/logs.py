"""Logs: what a worker logs about its attempts, whatever the app's logging configuration disables."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Final, NamedTuple, assert_never

from rowlock.db.safe_logger import SafeLogger
from rowlock.model.failure import recalled
from rowlock.model.formatting import count, span
from rowlock.model.outcome import (
    Blocked,
    Cancelled,
    Failed,
    HandedBack,
    Parked,
    Restarted,
    Retried,
    Snoozed,
    Succeeded,
    Unsettled,
)
from rowlock.model.row import ClaimedJob
from rowlock.workflow.logs import log_failure, log_fields

log = SafeLogger("rowlock.worker")

# Jobs to which the same happens for the same reason are a line at first, and then a count each minute.
_EVERY: Final = 60.0
# Names and arguments can be made up, and there is no end to them: of more reasons at once, only the jobs are counted.
_MOST_REASONS: Final = 100
_WHY: Final = {
    "refused": "its retry policy does not retry this error",
    "result": "its result cannot be stored",
    "poison": "too many workers died while they ran it",
}


class _Kind(NamedTuple):
    """What may happen to a hundred thousand jobs at once, by a deploy that is late, or by a pause."""

    level: int
    one: str
    many: str
    any_reason: str


class _Group(NamedTuple):
    """Jobs of one task to which the same happens for the same reason."""

    kind: _Kind
    task: str
    reason: str


_CODE: Final = _Kind(logging.WARNING, "waits for code", "wait for code", "unknown tasks, or arguments that do not fit")
_PAUSE: Final = _Kind(logging.INFO, "waits", "wait", "their tasks are paused")
_EXPIRED: Final = _Kind(logging.INFO, "is cancelled", "are cancelled", "expired")


class AttemptLog:
    """Writes a line for each attempt that ended in something to know of."""

    def __init__(self) -> None:
        self._more: dict[_Group, int] = {}  # how many jobs of it since its last line

    def __call__(self, row: ClaimedJob, outcome: Unsettled, took: float, error: BaseException | None) -> None:
        """Log what became of an attempt; `error` is what it raised, if this process has seen it."""
        match outcome:
            case Succeeded():
                if log.isEnabledFor(logging.DEBUG):
                    fields = log_fields(row) | {"outcome": "succeeded", "seconds": took}
                    log.debug("%s %s succeeded in %.3f s", row.task, row.id, took, extra=fields)
            case Failed():
                self._failed(row, outcome, took, error)
            case Retried():
                self._retried(row, outcome, took, error)
            case Blocked("code"):
                self._blocked(row, outcome, took, error)
            case Blocked("pause", reason):
                self._grouped(row, _Group(_PAUSE, row.task, reason))
            case Cancelled("expired" as reason):
                self._grouped(row, _Group(_EXPIRED, row.task, reason))
            case Parked():
                if log.isEnabledFor(logging.DEBUG):
                    log.debug("%s %s %s", row.task, row.id, _words(outcome), extra=log_fields(row))
            case _:
                log.info("%s %s %s", row.task, row.id, _words(outcome), extra=log_fields(row))

    def close(self) -> None:
        """Say what has been counted and not been said yet."""
        for group in list(self._more):
            self._say_more(group, again=False)

    def _failed(self, row: ClaimedJob, outcome: Failed, took: float, error: BaseException | None) -> None:
        if log.isEnabledFor(logging.ERROR):
            told = recalled(outcome.failure)
            why = _WHY.get(outcome.reason, "" if outcome.reason in ("exhausted", "raised") else outcome.reason)
            log_failure(
                log,
                logging.ERROR,
                (
                    f"%s %s failed for good in attempt %d of %d{' (%s)' if why else '%s'}: %s",
                    *(row.task, row.id, row.failures + 1, row.attempts, why, told.first_line),
                ),
                log_fields(row) | {"outcome": "failed", "seconds": took, "reason": outcome.reason},
                told,
                error=error,
            )

    def _retried(self, row: ClaimedJob, outcome: Retried, took: float, error: BaseException | None) -> None:
        if log.isEnabledFor(logging.WARNING):
            told = recalled(outcome.failure)
            log_failure(
                log,
                logging.WARNING,
                (
                    "%s %s failed in attempt %d of %d and is tried again in %s: %s",
                    *(row.task, row.id, row.failures + 1, row.attempts, span(outcome.delay), told.first_line),
                ),
                log_fields(row) | {"outcome": "retried", "seconds": took, "delay": outcome.delay.total_seconds()},
                told,
                error=error,
                # The last failure always has it. That of one before is in the job's record, and in the log at DEBUG.
                with_traceback=log.isEnabledFor(logging.DEBUG),
            )

    def _blocked(self, row: ClaimedJob, outcome: Blocked, took: float, error: BaseException | None) -> None:
        if outcome.failure is None:
            self._grouped(row, _Group(_CODE, row.task, outcome.reason))
        elif log.isEnabledFor(logging.ERROR):
            fields = log_fields(row) | {"outcome": "blocked", "seconds": took, "reason": outcome.reason}
            log_failure(
                log,
                logging.ERROR,
                (
                    "%s %s is blocked, and tried again in %s and by new code: %s",
                    *(row.task, row.id, span(outcome.delay or timedelta(0)), outcome.reason),
                ),
                fields,
                recalled(outcome.failure),
                error=error,
            )

    def _grouped(self, row: ClaimedJob, group: _Group) -> None:
        kind = group.kind
        if not log.isEnabledFor(kind.level):
            return
        if group in self._more:
            self._more[group] += 1
        elif len(self._more) < _MOST_REASONS:
            self._count(group)
            log.log(kind.level, "%s %s %s: %s", row.task, row.id, kind.one, group.reason, extra=log_fields(row))
        else:
            others = _Group(kind, "other tasks", kind.any_reason)
            if others not in self._more:
                self._count(others)
            self._more[others] += 1

    def _count(self, group: _Group) -> None:
        self._more[group] = 0
        asyncio.get_running_loop().call_later(_EVERY, self._say_more, group)

    def _say_more(self, group: _Group, *, again: bool = True) -> None:
        if more := self._more.pop(group, 0):
            kind, task, reason = group
            does = kind.one if more == 1 else kind.many
            log.log(kind.level, "%s of %s %s: %s", count(more, "more job"), task, does, reason)
            if again:
                self._count(group)


def _words(outcome: Unsettled) -> str:
    match outcome:
        case Cancelled(reason):
            said = "is cancelled: somebody asked for it" if reason == "asked" else f"is cancelled: {reason}"
        case Snoozed(delay):
            said = f"snoozes for {span(delay)}"
        case HandedBack():
            said = "is handed back, at no cost"
        case Restarted():
            said = "begins again with a fresh history"
        case Parked(waits_for=waits_for):
            said = f"is parked until {waits_for or 'its time'} comes"
        case Blocked(reason=reason):
            said = f"waits: {reason}"
        case Succeeded() | Failed() | Retried():
            raise AssertionError(f"{type(outcome).__name__} has a line of its own")
        case _:
            assert_never(outcome)
    return said


def keep_loggers_enabled() -> None:
    """Take back what `disable_existing_loggers`, which is on by default, did to our loggers: a worker is never silent.

    To hear less of Rowlock, set the level of the logger "rowlock".
    """
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if name.partition(".")[0] == "rowlock" and isinstance(logger, logging.Logger):
            logger.disabled = False
