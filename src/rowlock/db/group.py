"""Group commit for async enqueues: callers that come while one commit is under way share the next.

No timer: a lone caller's job is sent at once. Each caller returns after its own commit, and one caller's bad row never
fails another's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from weakref import WeakKeyDictionary

import psycopg

from rowlock.db.database import Database
from rowlock.db.session import broken
from rowlock.model.row import NewJob
from rowlock.store import jobs

_Waiting = tuple[NewJob, "asyncio.Future[None]"]


class GroupCommit:
    """Where async enqueues without a connection or a key meet, apart for each event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._groups: WeakKeyDictionary[asyncio.AbstractEventLoop, _Group] = WeakKeyDictionary()

    async def enqueue(self, job: NewJob) -> None:
        """Return when the job is committed."""
        loop = asyncio.get_running_loop()
        group = self._groups.get(loop)
        if group is None:
            group = self._groups[loop] = _Group(self._database)
        await group.enqueue(job, loop)


class _Group:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: deque[_Waiting] = deque()
        self._sending: asyncio.Task[None] | None = None

    async def enqueue(self, job: NewJob, loop: asyncio.AbstractEventLoop) -> None:
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append((job, done))
        if self._sending is None or self._sending.done():
            self._sending = loop.create_task(self._send_all())
        await done

    async def _send_all(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), jobs.CHUNK))]
            await self._send(batch)

    async def _send(self, batch: Sequence[_Waiting]) -> None:
        new = [job for job, _ in batch]
        try:
            await self._database.aconverse(lambda resend: jobs.enqueue_all(new, resend=resend), atomic=False)
        except psycopg.Error as error:
            if len(batch) > 1 and not broken(error):
                for one in batch:  # somebody's row is bad; find out whose
                    await self._send([one])
                return
            _answer(batch, error)
        except BaseException as error:
            _answer(batch, error)
            if not isinstance(error, Exception):
                raise
        else:
            _answer(batch, None)


def _answer(batch: Sequence[_Waiting], error: BaseException | None) -> None:
    for _, done in batch:
        if done.done():
            continue  # its caller was cancelled
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
