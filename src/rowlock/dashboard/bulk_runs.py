"""Bulk runs: operations on whole filters, previewed and confirmed, that go on after the response.

A filter with a slip in it matches other jobs than were meant, and only their number shows it. So each request sends how
many jobs it expects, as the preview counted them.

Runs belong to this process, and can be watched and stopped. A dashboard that ends in the middle of one leaves every job
either changed, with its event, or as it was, and the operation can be started again: jobs that are changed already are
passed over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from rowlock.app.app import Rowlock
from rowlock.app.checks import enough_after
from rowlock.errors import InvalidOption, RowlockError
from rowlock.model.filter import Filter
from rowlock.model.formatting import count
from rowlock.model.ids import new_id
from rowlock.model.results import Done, Preview
from rowlock.model.verb import VERBS, VerbName
from rowlock.store.find import pages, windows

log = logging.getLogger("rowlock.dashboard")

Track = Callable[[Done], object]
Status = Literal["underway", "done", "stopped", "failed"]

_MOST: Final = 4
_SHOWN: Final = timedelta(minutes=10)
_PATIENCE: Final = 1.0
"""Seconds for which the request waits for the end of its run: most are done by then."""
_PREVIEW_TIMEOUT: Final = timedelta(seconds=1)
# While somebody reads a preview, more jobs fail. So many more than were expected are still what was meant.
_TOLERANCE: Final = 0.1


async def preview(reader: Rowlock, verb: VerbName, wanted: Filter) -> Preview:
    """The jobs that a verb would change, counted for a second at most."""
    named, enough = VERBS[verb], enough_after(_PREVIEW_TIMEOUT)
    return await reader.database.aconverse(
        lambda: pages.preview(wanted, named, looks=windows.BRIEF, enough=enough), atomic=False
    )


async def check_expected(
    reader: Rowlock, verb: VerbName, wanted: Filter, expected: int | None, *, at_least: bool
) -> None:
    """Refuse a verb that would change more jobs than expected. Jobs beyond that when it runs are not changed."""
    if expected is None:
        raise InvalidOption(
            f"expected is missing: send how many jobs this is to change; GET /api/jobs/preview?verb={verb} counts them"
        )
    if at_least:
        return
    now = await preview(reader, verb, wanted)
    if now.count > (most_of(expected, at_least=False) or 0):
        many, so_far = count(now.count, "job"), "at least " if now.capped else ""
        hint = f"expected={now.count}" + (" and at_least=true" if now.capped else "")
        raise RowlockError(
            f"{so_far}{many} would be changed now, and {expected:,} {'was' if expected == 1 else 'were'} expected; "
            f"nothing was changed. Look at the preview again, and send {hint} if that is what you mean"
        )


def most_of(expected: int, *, at_least: bool) -> int | None:
    """How many jobs may be changed if so many were expected; None for any number."""
    return None if at_least else expected + int(expected * _TOLERANCE)


@dataclass(frozen=True, slots=True)
class BulkRun:
    """A bulk run as it is now: the operation, who started it, and how far it has come."""

    id: str
    verb: VerbName
    target: str  # which jobs, in words
    by: str
    begun_at: datetime
    ended_at: datetime | None
    status: Status
    changed: int
    passed_over: int


class _Stopped(Exception):
    """Somebody has stopped it."""


class _ActiveRun:
    """A bulk run that this process works on."""

    def __init__(self, verb: VerbName, target: str, by: str, most: int | None = None) -> None:
        self.id = new_id()
        self.begun_at = datetime.now(UTC)
        self.ended_at: datetime | None = None
        self.status: Status = "underway"
        self.done = Done(verb)
        self.is_to_stop = False
        self._target, self._by, self._most = target, by, most

    def track(self, done: Done) -> None:
        """Called after every window; between two of them it can be stopped, and nothing is left half done.

        It stops by itself once it has changed more jobs than were expected.
        """
        self.done = done
        is_too_many = self._most is not None and done.changed > self._most
        if (self.is_to_stop or is_too_many) and done.before is not None:
            raise _Stopped

    async def run(self, work: Callable[[Track], Awaitable[Done]]) -> None:
        try:
            self.done = await work(self.track)
            self.status = "done"
        except (_Stopped, asyncio.CancelledError):
            self.status = "stopped"
        except Exception:
            log.exception("an order to %s jobs has failed", self.done.verb)
            self.status = "failed"
        finally:
            self.ended_at = datetime.now(UTC)

    def shown(self) -> BulkRun:
        done = self.done
        return BulkRun(
            id=self.id,
            verb=done.verb,
            target=self._target,
            by=self._by,
            begun_at=self.begun_at,
            ended_at=self.ended_at,
            status=self.status,
            changed=done.changed,
            passed_over=done.passed_over,
        )


class BulkRuns:
    """The bulk runs of this process, until some minutes after their end."""

    def __init__(self) -> None:
        self._runs: dict[str, _ActiveRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def start(
        self, verb: VerbName, target: str, *, by: str, most: int | None = None, work: Callable[[Track], Awaitable[Done]]
    ) -> BulkRun:
        """Start a run; returns it when it has ended, or after a second as far as it has come."""
        self._forget()
        if sum(run.status == "underway" for run in self._runs.values()) >= _MOST:
            raise RowlockError(f"{_MOST} orders are underway; wait for one of them, or stop it")
        run = _ActiveRun(verb, target, by, most)
        task = asyncio.create_task(run.run(work))
        self._runs[run.id], self._tasks[run.id] = run, task
        task.add_done_callback(lambda _task: self._tasks.pop(run.id, None))
        await asyncio.wait({task}, timeout=_PATIENCE)
        if run.status == "done":
            self._runs.pop(run.id, None)  # its request gets the result; the page shows runs that take longer
        return run.shown()

    def stop(self, run_id: str) -> BulkRun | None:
        """Have a run end after its current jobs; None if there is no such run."""
        run = self._runs.get(run_id)
        if run is None:
            return None
        run.is_to_stop = True
        return run.shown()

    def shown(self) -> tuple[BulkRun, ...]:
        """Runs that are underway, and the latest of those that took long or failed; newest first."""
        self._forget()
        return tuple(run.shown() for run in reversed(self._runs.values()))

    async def aclose(self) -> None:
        """Cancel the runs that are underway."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self) -> None:
        since = datetime.now(UTC) - _SHOWN
        self._runs = {known: run for known, run in self._runs.items() if run.ended_at is None or run.ended_at > since}
