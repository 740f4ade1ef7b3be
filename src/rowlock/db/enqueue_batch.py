"""Enqueue batches: async enqueues that come while one commit is under way share the next.

No timer: a lone caller's job is sent at once. Each caller returns after its own commit. A caller's bad row never fails
another's, and large jobs never make a statement so large that callers of small ones miss their deadline.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from functools import partial
from weakref import WeakKeyDictionary

import psycopg

from rowlock.db.database import Database
from rowlock.db.errors import is_connection_lost
from rowlock.model.row import NewJob
from rowlock.store.enqueue import CHUNK, enqueue_all, takes_several_statements
from rowlock.store.query import LARGEST_STATEMENT

_Waiting = tuple[NewJob, "asyncio.Future[None]"]


class EnqueueBatcher:
    """Batches of async enqueues without a connection or a key, for each event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._groups: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopBatcher] = WeakKeyDictionary()

    async def enqueue(self, job: NewJob) -> None:
        """Return when the job is committed."""
        loop = asyncio.get_running_loop()
        group = self._groups.get(loop)
        if group is None:
            group = self._groups[loop] = _LoopBatcher(self._database)
        await group.enqueue(job, loop)


class _LoopBatcher:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: deque[_Waiting] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._busy = False

    async def enqueue(self, job: NewJob, loop: asyncio.AbstractEventLoop) -> None:
        if self._busy:
            done: asyncio.Future[None] = loop.create_future()
            self._waiting.append((job, done))
            await done
            return
        self._busy = True
        try:
            await self._insert([job])  # by the caller itself: a task of its own would cost a lone job a fifth of a ms
        finally:
            self._sending = loop.create_task(self._send_all()) if self._waiting else None
            self._busy = self._sending is not None

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                await self._send(self._next_batch())
        finally:
            self._busy = False

    def _next_batch(self) -> list[_Waiting]:
        """What fits into one statement, by rows and by characters; a job alone always does."""
        batch = [self._waiting.popleft()]
        size = len(batch[0][0].args)
        while self._waiting and len(batch) < CHUNK:
            size += len(self._waiting[0][0].args)
            if size > LARGEST_STATEMENT:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _send(self, batch: Sequence[_Waiting]) -> None:
        try:
            await self._insert([job for job, _ in batch])
        except (psycopg.Error, UnicodeError) as error:
            if len(batch) > 1 and not (isinstance(error, psycopg.Error) and is_connection_lost(error)):
                half = len(batch) // 2  # somebody's row is bad; find out whose
                await self._send(batch[:half])
                await self._send(batch[half:])
                return
            _answer(batch, error)
        except BaseException as error:
            _answer(batch, error)
            if not isinstance(error, Exception):
                raise
        else:
            _answer(batch, None)

    async def _insert(self, new: Sequence[NewJob]) -> None:
        await self._database.aconverse(
            partial(enqueue_all, new),
            resend=partial(enqueue_all, new, resend=True),
            atomic=takes_several_statements(new),
        )


def _answer(batch: Sequence[_Waiting], error: BaseException | None) -> None:
    for _, done in batch:
        if done.done():
            continue  # its caller was cancelled
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
