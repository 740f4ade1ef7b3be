"""Orders: verbs over whole filters, which go on here after their request was answered, and can be watched and stopped.

They are this process's own. A dashboard that ends in the middle of one leaves every job either changed, with its event,
or as it was, and the order can be given again: what is done already is passed over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from rowlock.errors import RowlockError
from rowlock.model.ids import new_id
from rowlock.model.results import Done
from rowlock.model.verb import VerbName

log = logging.getLogger("rowlock.dashboard")

Track = Callable[[Done], object]
Status = Literal["underway", "done", "stopped", "failed"]

_MOST: Final = 4
_SHOWN: Final = timedelta(minutes=10)
_PATIENCE: Final = 1.0
"""Seconds for which whoever gives an order waits for its end: most of them are done by then."""


@dataclass(frozen=True, slots=True)
class BulkRun:
    """An order as it is now: what was asked for, by whom, and how far it has come."""

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
    """An order that is carried out."""

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

        So it is where it has changed more jobs than whoever ordered it expected.
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
    """The orders that were given here lately."""

    def __init__(self) -> None:
        self._orders: dict[str, _ActiveRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def start(
        self, verb: VerbName, target: str, *, by: str, most: int | None = None, work: Callable[[Track], Awaitable[Done]]
    ) -> BulkRun:
        """Begin an order; answers it when it has ended, or after a second with how far it has come."""
        self._forget()
        if sum(order.status == "underway" for order in self._orders.values()) >= _MOST:
            raise RowlockError(f"{_MOST} orders are underway; wait for one of them, or stop it")
        order = _ActiveRun(verb, target, by, most)
        task = asyncio.create_task(order.run(work))
        self._orders[order.id], self._tasks[order.id] = order, task
        task.add_done_callback(lambda _task: self._tasks.pop(order.id, None))
        await asyncio.wait({task}, timeout=_PATIENCE)
        if order.status == "done":
            self._orders.pop(order.id, None)  # whoever gave it is told; the page shows what takes longer
        return order.shown()

    def stop(self, order_id: str) -> BulkRun | None:
        """Have an order end after the jobs that it is at; None if there is no such order."""
        order = self._orders.get(order_id)
        if order is None:
            return None
        order.is_to_stop = True
        return order.shown()

    def shown(self) -> tuple[BulkRun, ...]:
        """Those that are underway, and of those that took long, or failed, what became of them lately; newest first."""
        self._forget()
        return tuple(order.shown() for order in reversed(self._orders.values()))

    async def aclose(self) -> None:
        """End what is underway."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self) -> None:
        since = datetime.now(UTC) - _SHOWN
        self._orders = {
            known: order for known, order in self._orders.items() if order.ended_at is None or order.ended_at > since
        }
