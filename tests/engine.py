"""A worker's statements, one at a time, for tests that decide when each of them runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar
from uuid import uuid4

from rowlock.db.session import Connection, connect, run
from rowlock.model.ids import new_ids
from rowlock.model.outcome import Ended, Returned, Succeeded
from rowlock.model.row import ClaimedJob, NewJob
from rowlock.store import claim as claim_store
from rowlock.store import enqueue as enqueue_store
from rowlock.store import settle as settle_store
from rowlock.store import workers
from rowlock.store.claim import PRIORITIES, Lane
from rowlock.store.query import Query

T = TypeVar("T")

SCHEMA = "rowlock"


class Engine:
    """One session, registered as a worker."""

    def __init__(self, url: str, *, lease: timedelta = timedelta(days=1)) -> None:
        self.connection: Connection = connect(url, name="rowlock test")
        self.worker = str(uuid4())
        facts = {
            "queues": ["default"],
            "tasks": ["t"],
            "schedules": [],
            "slots": 1,
            "host": "test",
            "pid": 1,
            "version": "0",
        }
        self.run(workers.register(worker=self.worker, lease=lease, **facts))  # type: ignore[arg-type]

    def run(self, query: Query[T]) -> list[T]:
        return run(self.connection.cursor(), query, SCHEMA)

    def enqueue(
        self, count: int = 1, *, queue: str = "default", priority: int = 0, delay: timedelta | None = None
    ) -> list[str]:
        """Insert jobs of a task named `t`."""
        ids = new_ids(count)
        new = [NewJob(job_id, queue, "t", "{}", priority, 10, delay=delay) for job_id in ids]
        for chunk in enqueue_store.chunks(new):
            self.run(enqueue_store.insert(chunk))
        return ids

    def claim(self, limit: int = 100, *, lanes: Sequence[Lane] | None = None) -> list[ClaimedJob]:
        """Claim from the bottom of the queue `default`, or from these lanes."""
        lanes = lanes or [Lane("default", priority) for priority in PRIORITIES]
        return run(self.connection.cursor(), claim_store.claim(lanes=lanes, limit=limit, worker=self.worker), SCHEMA)

    def settle(self, *attempts: ClaimedJob, outcome: Ended = Succeeded(None)) -> list[str]:  # noqa: B008  a frozen value
        """Settle attempts alike; answers the tokens accepted."""
        day = timedelta(days=1)
        return run(
            self.connection.cursor(), settle_store.settle_jobs([(row, outcome, day) for row in attempts]), SCHEMA
        )

    def give_back(self, *attempts: ClaimedJob, outcome: Returned) -> list[str]:
        """Return attempts alike; answers the tokens accepted."""
        return run(self.connection.cursor(), settle_store.return_jobs([(row, outcome) for row in attempts]), SCHEMA)

    def close(self) -> None:
        self.connection.close()
