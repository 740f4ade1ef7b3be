"""The limit: the statements that Rowlock sends, in a bare loop on one connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from operator import itemgetter
from types import TracebackType
from typing import Any, Self
from uuid import UUID, uuid4

from benchmarks.tasks import SCHEMA, noop
from rowlock import Task
from rowlock.db.session import connect
from rowlock.model.ids import new_ids
from rowlock.model.outcome import Succeeded
from rowlock.model.row import ClaimedJob, NewJob
from rowlock.model.spec import DEFAULT_QUEUE, Keep
from rowlock.store import claim as claim_store
from rowlock.store import enqueue, workers
from rowlock.store import settle as settle_store
from rowlock.store.claim import PRIORITIES, Lane
from rowlock.store.query import Conversation, Copy, Query, plain_array, statement

Row = tuple[Any, ...]

# A queue on which no worker works, for a loop that runs while one is there.
BARE_QUEUE = "bare"

_ID, _TOKEN = itemgetter(ClaimedJob._fields.index("id")), itemgetter(ClaimedJob._fields.index("token"))
_PLACE = itemgetter(ClaimedJob._fields.index("run_at"), ClaimedJob._fields.index("id"))


class BareLoop:
    """A worker without a worker's work: it looks at no row, runs nothing, and waits for one answer at a time.

    Parameters are put together with as little Python as will do, so that what is measured is PostgreSQL.
    """

    def __init__(self, conninfo: str, *, queue: str = DEFAULT_QUEUE) -> None:
        self.connection = connect(conninfo, name="bench limit")
        self._worker = str(uuid4())
        self._lanes = [Lane(queue, priority) for priority in PRIORITIES]
        self._register(queue)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.close()

    def send(self, said: Query[Any] | Copy) -> list[Row]:
        """Run a statement; answers its rows as they came."""
        text = statement(said.name, SCHEMA)
        if isinstance(said, Copy):
            with self.connection.cursor().copy(text) as copy:
                for block in said.blocks:
                    copy.write(block)
            return []
        cursor = self.connection.execute(text, said.params)
        return cursor.fetchall() if cursor.description else []

    def claim(self, limit: int) -> list[Row]:
        """Claim from where the last claim ended, as a worker does."""
        rows = self.send(self.claim_query(limit))
        if rows:
            run_at, job_id = max(map(_PLACE, rows))
            self._lanes[PRIORITIES.index(0)] = self._lanes[PRIORITIES.index(0)]._replace(run_at=run_at, id=job_id)
        return rows

    def claim_query(self, limit: int) -> Query[ClaimedJob]:
        """The next claim."""
        return claim_store.claim(lanes=self._lanes, limit=limit, worker=self._worker)

    def settle(self, rows: Sequence[Row]) -> None:
        """End these jobs as succeeded."""
        ids, tokens = plain_array(map(_ID, rows)), plain_array(map(_TOKEN, rows))
        self.send(Query("job_settle", {**_succeeded(len(rows)), "ids": ids, "tokens": tokens}, tuple))

    def drain(self, batch: int) -> None:
        """Claim and settle until nothing is left."""
        while rows := self.claim(batch):
            self.settle(rows)

    def _register(self, queue: str) -> None:
        self.send(
            workers.register(
                worker=self._worker,
                host="bench",
                pid=0,
                queues=[queue],
                slots=1,
                tasks=[],
                schedules=[],
                version="bench",
                lease=timedelta(hours=1),
            )
        )


def new_jobs(count: int, *, queue: str = DEFAULT_QUEUE) -> list[NewJob]:
    """So many no-op jobs, ready to insert."""
    args, attempts = noop.bind(1).args, noop.spec.retry.attempts
    return [NewJob(job_id, queue, noop.name, args, 0, attempts) for job_id in new_ids(count)]


def ready_made(count: int, *, queue: str = DEFAULT_QUEUE, size: int = enqueue.CHUNK) -> list[Query[str]]:
    """The inserts of so many jobs, `size` to each, their text put together before anyone looks at the clock."""
    new = new_jobs(count, queue=queue)
    if size == 1:
        return [enqueue.insert_one(job) for job in new]  # as enqueue does with one
    return [enqueue.insert(new[start : start + size]) for start in range(0, count, size)]


def rehearsed(conversation: Conversation[Any], bare: BareLoop) -> list[Query[Any] | Copy]:
    """What a conversation says, put together by holding it once and rolling it back."""
    said: list[Query[Any] | Copy] = []
    with bare.connection.transaction(force_rollback=True):
        rows: list[Any] | None = None
        try:
            while True:
                # A generator's first `send` takes None.
                words = conversation.send(rows)  # type: ignore[arg-type]
                if isinstance(words, Copy):
                    words = replace(words, blocks=list(words.blocks))
                said.append(words)
                rows = [words.read(row) for row in bare.send(words)] if isinstance(words, Query) else bare.send(words)
        except StopIteration:
            return said


@lru_cache(maxsize=8)
def _succeeded(count: int) -> dict[str, str | None]:
    """What a settle of so many jobs says beside their ids and tokens: the same each time."""
    return dict(settle_store.settle_jobs([(claimed_by_nobody(noop), Succeeded(None), Keep().succeeded)] * count).params)


def claimed_by_nobody(task: Task[..., Any]) -> ClaimedJob:
    """A row that stands for any other, where only what it shares with them counts."""
    return ClaimedJob(
        id=str(UUID(int=0)),
        token=str(UUID(int=0)),
        task=task.name,
        args="",
        queue=DEFAULT_QUEUE,
        priority=0,
        run_at="",
        failures=0,
        crashes=0,
        claims=0,
        attempts=1,
        expired=None,
        paused=False,
        key=None,
        tags=None,
        version=task.spec.version,
    )
