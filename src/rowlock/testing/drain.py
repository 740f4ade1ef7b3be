"""Drain: runs due jobs here and now, by the statements and calls of a worker."""

from __future__ import annotations

import asyncio
import os
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from importlib.metadata import version
from typing import Any, TypeVar
from uuid import UUID, uuid4

from rowlock.app.app import Rowlock
from rowlock.app.verbs import refuse_in_loop
from rowlock.db import borrowed
from rowlock.db.borrowed import lent
from rowlock.db.borrowed.joining import TransactionEnd
from rowlock.db.borrowed.lent import NestedTransactions
from rowlock.db.handler_connections import HandlerConnections
from rowlock.errors import Interruption, InvalidOption, RowlockError, WrongConnection
from rowlock.model.outcome import Cancelled, Committed, Outcome, Succeeded, Unsettled
from rowlock.model.row import ClaimedJob
from rowlock.store import claim, jobs, queues, schema, settle, upkeep, workers
from rowlock.store.claim import Lane
from rowlock.store.query import Conversation, Query
from rowlock.testing.drained import Attempt, Drained
from rowlock.testing.memory import Begin, Converse, DrainMemory
from rowlock.testing.side_loop import InThread, in_framework_thread, in_side_loop
from rowlock.worker.around import checked, enter
from rowlock.worker.attempt import RunningAttempt as WorkersAttempt
from rowlock.worker.call import Caller
from rowlock.worker.queues import ALL, Floors, Queues
from rowlock.worker.settle import Breakers, Retention
from rowlock.worker.transaction import TransactionResources
from rowlock.workflow.worker_interface import TransactionProvider

T = TypeVar("T")

# Renewed before each claim; so long, because a test may sit in a debugger.
_LEASE = timedelta(hours=1)


def drain(
    app: Rowlock,
    *,
    connection: object | None = None,
    queues: str | Sequence[str] | None = None,
    limit: int = 10_000,
    raising: bool = False,
) -> Drained:
    """Run due jobs one after the other until none is due, those that their handlers enqueue included.

    With `connection` it all happens there, inside its open transaction; a DjangoRowlock finds that of Django's TestCase
    by itself. Sync handlers run in this thread. What handlers raise is kept in the report, and their jobs are retried
    as in production; `raising` raises the first of it here.

    A workflow runs until it waits for something that is not there yet: `travel` to the end of its sleep, or send it a
    signal, and drain again. Its children are run by the same drain.
    """
    refuse_in_loop("drain", "await adrain(…)")
    connection = app.database.within.block() if connection is None else connection

    async def main(in_thread: InThread) -> Drained:
        offered = None if connection is None else lent.FromThread(connection, in_thread)

        def converse(begin: Begin[T], resend: Begin[T] | None = None) -> Awaitable[T]:
            return in_thread(partial(app.database.converse, begin, resend=resend, connection=connection))

        return await _Drain(app, converse, in_thread, queues=queues, limit=limit, raising=raising).run(offered)

    drained = in_side_loop(main)
    own = None if connection is not None or drained.attempts else _own_transaction(app)
    if own is not None:
        unseen: set[str] = set()
        with suppress(Exception):  # it is of the other kind, or its transaction has failed
            theirs = app.database.converse(_due, connection=own, atomic=False)
            unseen = {*theirs} - {*app.database.converse(_due, atomic=False)}
        _refuse_unseen(unseen)
    return drained


async def adrain(
    app: Rowlock,
    *,
    connection: object | None = None,
    queues: str | Sequence[str] | None = None,
    limit: int = 10_000,
    raising: bool = False,
) -> Drained:
    """Run due jobs one after the other until none is due, those that their handlers enqueue included.

    With `connection` it all happens there, inside its open transaction; a DjangoRowlock finds that of Django's TestCase
    by itself. Sync handlers run in a thread. What handlers raise is kept in the report, and their jobs are retried as
    in production; `raising` raises the first of it here.

    A workflow runs until it waits for something that is not there yet: `travel` to the end of its sleep, or send it a
    signal, and drain again. Its children are run by the same drain.
    """
    connection = await app.database.within.ablock() if connection is None else connection
    offered = None if connection is None else lent.from_loop(connection, asyncio.get_running_loop())

    def converse(begin: Begin[T], resend: Begin[T] | None = None) -> Awaitable[T]:
        return app.database.aconverse(begin, resend=resend, connection=connection)

    drained = await _Drain(app, converse, in_framework_thread, queues=queues, limit=limit, raising=raising).run(offered)
    own = None if connection is not None or drained.attempts else _own_transaction(app)
    if own is not None:
        unseen: set[str] = set()
        with suppress(Exception):  # it is of the other kind, or its transaction has failed
            theirs = await app.database.aconverse(_due, connection=own, atomic=False)
            unseen = {*theirs} - {*await app.database.aconverse(_due, atomic=False)}
        _refuse_unseen(unseen)
    return drained


def _due() -> Conversation[list[str]]:
    """The queues with jobs that are due."""
    return [lane.queue for lane in (yield claim.lanes())]


def _own_transaction(app: Rowlock) -> object | None:
    """The connection of the app's own function, if a transaction is open on it."""
    own = app.database.within.choose(None)
    return own if own is not None and borrowed.in_transaction(own) else None


def _refuse_unseen(queues: set[str]) -> None:
    """Raise if nothing was run and the caller's transaction has due jobs: a test would believe that there are none."""
    if queues:
        raise InvalidOption(
            f"drain has looked on a connection of its own, and found no job; in the open transaction of the app's "
            f"connection= there are some, on {', '.join(sorted(queues))}: say drain(app, connection=…), with that "
            "connection, or commit first"
        )


class _Drain:
    """A worker with one slot and no life of its own."""

    def __init__(
        self,
        app: Rowlock,
        converse: Converse,
        in_thread: InThread,
        *,
        queues: str | Sequence[str] | None,
        limit: int,
        raising: bool,
    ) -> None:
        if limit < 1:
            raise InvalidOption(f"limit={limit} must be at least 1")
        self._app = app
        self._handlers = app.load()
        self._converse = converse
        self._in_thread = in_thread
        self._queues = (
            None if queues is None or queues == ALL else Queues([queues] if isinstance(queues, str) else queues)
        )
        self._limit = limit
        self._raising = raising
        self._retention = Retention(self._handlers, app.keep)
        self._errors: list[BaseException] = []
        self._said: dict[str, tuple[ClaimedJob, float, str | None]] = {}
        self._memory = DrainMemory(converse)
        self._caller = Caller(
            handlers=self._handlers,
            in_thread=in_thread,
            database=self,
            resources=TransactionResources(self, self._handlers, self._retention.after, self._last_words),
            memory=self._memory,
            arounds=app.arounds,
            progress=self._say,
            on_error=self._errors.append,
        )
        self._worker = str(uuid4())
        self._attempts: list[Attempt] = []
        self._expired = 0
        self._breakers = Breakers(self._handlers)
        self._offered: object | None = None
        self._ground: TransactionProvider

    async def run(self, offered: object | None) -> Drained:
        """Run what is due; handlers enqueue on the connection that is `offered`, if there is one."""
        async with AsyncExitStack() as stack:
            await enter(stack, checked(self._app.lifespan(), "lifespan"))
            self._offered = offered
            if offered is not None:
                stack.enter_context(self._app.within(offered))
            try:
                await self._converse(self._start)
            except WrongConnection as error:
                error.add_note("drain takes sync connections, and Django's; adrain takes async ones, and Django's")
                raise
            self._ground = await self._find_ground(stack)
            try:
                await self._work()
                self._expired = await self._converse(self._expire)
            except BaseException:
                with suppress(Exception):  # the connection may be past use, and the first error is the one to see
                    await self._converse(self._leave)
                raise
            await self._converse(self._leave)
        return Drained(tuple(self._attempts), self._expired)

    async def _work(self) -> None:
        while (row := await self._converse(self._claim, partial(self._claim, resend=True))) is not None:
            if len(self._attempts) == self._limit:
                raise self._endless(row)
            self._errors.clear()
            outcome = await self._run(row)
            error = self._errors[0] if self._errors else None
            try:
                if isinstance(outcome, Committed):
                    outcome = Succeeded(outcome.result)
                else:
                    settling = partial(self._settle, row, outcome)
                    await self._converse(settling, partial(settling, resend=True))
            except Exception as trouble:
                raise trouble from error  # which may be what broke the transaction
            kept = None if isinstance(error, Interruption) else error
            self._attempts.append(Attempt(UUID(row.id), row.task, row.queue, row.failures + 1, outcome, kept))
            if kept is not None and (self._raising or _is_for_the_test(kept)):
                raise kept

    async def _run(self, row: ClaimedJob) -> Outcome:
        """One attempt, in a task of its own: a cancellation of ours is none of its own."""
        restore = None if self._offered is None else await self._in_thread(partial(lent.mark, self._offered))
        try:
            return await self._attempt(row)
        finally:
            if restore is not None:
                await self._in_thread(restore)

    async def _attempt(self, row: ClaimedJob) -> Outcome:
        attempt = asyncio.create_task(self._caller.attempt(WorkersAttempt(row)))
        try:
            await asyncio.wait({attempt})
        except asyncio.CancelledError:
            self._caller.draining = True
            attempt.cancel()
            await asyncio.wait({attempt})
            raise
        return attempt.result()

    def converse(self, begin: Begin[T], *, atomic: bool = True) -> T:
        """Hold a conversation for a sync handler, on the connection where its job is."""
        return self._app.database.converse(begin, connection=self._offered, atomic=atomic)

    async def aconverse(self, begin: Begin[T], *, atomic: bool = True) -> T:
        """Hold a conversation for an async handler, on the connection where its job is."""
        return await self._app.database.aconverse(begin, connection=self._offered, atomic=atomic)

    async def _find_ground(self, stack: AsyncExitStack) -> TransactionProvider:
        """Where handlers hold their transactions: on the connection where their jobs are, else as in a worker."""
        database = self._app.database
        if self._offered is not None:
            return NestedTransactions(self._offered, database.schema, database.within)
        server = await asyncio.to_thread(database.server)
        ground = HandlerConnections(
            server, database.schema, within=database.within, deadline=database.deadline.value.total_seconds()
        )
        stack.push_async_callback(ground.close)
        return ground

    def choose(self, named: object | None) -> object | None:
        """The connection to use where a handler has named this one."""
        return self._ground.choose(named)

    def transaction(self, connection: object | None, last: TransactionEnd) -> AbstractContextManager[object]:
        """The transaction of a sync handler."""
        return self._ground.transaction(connection, last)

    @asynccontextmanager
    async def atransaction(self, connection: object | None, last: TransactionEnd) -> AsyncIterator[object]:
        """The transaction of an async handler."""
        async with self._memory.turn, self._ground.atransaction(connection, last) as lent:
            yield lent

    def _say(self, row: ClaimedJob, share: float, note: str | None) -> None:
        """Keep the latest progress of an attempt."""
        self._said[row.token] = (row, share, note)

    def _last_words(self, row: ClaimedJob) -> list[tuple[ClaimedJob, float, str | None]]:
        return [self._said[row.token]] if row.token in self._said else []

    # Conversations

    def _start(self) -> Conversation[None]:
        yield from schema.make_partitions(longest=self._retention.longest)
        self._retention.learn((yield queues.settings()))
        yield self._register()

    def _claim(self, *, resend: bool = False) -> Conversation[ClaimedJob | None]:
        if resend:
            yield workers.hand_back(worker=self._worker)
        if not (yield workers.renew(worker=self._worker)):  # somebody moved the clock past our lease
            yield workers.leave(worker=self._worker)
            yield self._register()
        lanes = (yield claim.lanes()) if self._queues is None else _lanes(self._queues)
        rows: list[ClaimedJob] = (yield claim.claim(lanes=lanes, limit=1, worker=self._worker)) if lanes else []
        return rows[0] if rows else (yield from self._take_up())

    def _take_up(self) -> Conversation[ClaimedJob | None]:
        """A job that waited for code, and now has it."""
        if (yield upkeep.unblock())[0]:
            return (yield from self._claim())
        tasks = sorted(self._handlers)
        names: Sequence[str] = (yield queues.blocked(tasks)) if self._queues is None else self._queues.names
        rows = yield claim.take_up(queues=names, tasks=tasks, limit=1, worker=self._worker)
        return rows[0] if rows else None

    def _expire(self) -> Conversation[int]:
        """Cancel expired jobs, as a worker's upkeep does where nobody claims."""
        ended = 0
        while chunk := (yield upkeep.expire(keep=self._app.keep.cancelled))[0]:
            ended += chunk
        return ended

    def _register(self) -> Query[Any]:
        return workers.register(
            worker=self._worker,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=() if self._queues is None else self._queues.names,
            slots=1,
            tasks=sorted(self._handlers),
            schedules=(),
            version=version("rowlock"),
            lease=_LEASE,
        )

    def _settle(self, row: ClaimedJob, outcome: Unsettled, *, resend: bool = False) -> Conversation[None]:
        if row.token in self._said:
            yield jobs.progress([self._said[row.token]])
        written = yield self._end(row, outcome)
        if not written and row.version is None and (row.token, True) in (yield jobs.held([row])):
            written = yield self._end(row, Cancelled("asked"))  # somebody has asked for that, so it may not come back
        if not written and not resend:
            raise RowlockError(
                f"{row.task} {row.id} ran, but its outcome cannot be written: its row has changed or is locked; see "
                "whether the handler rolled back or committed the connection that is drained, or whether a worker or "
                "an open transaction has the job"
            )
        if (counting := self._breakers.counting([(row, outcome)])) is not None:
            yield counting

    def _end(self, row: ClaimedJob, outcome: Unsettled) -> Query[str]:
        return settle.settle_alike(
            [(row, outcome)],
            keep=self._retention.after,
            told=self._memory.last_states,
            cancelled=self._app.keep.cancelled,
        )

    def _leave(self) -> Conversation[None]:
        yield workers.hand_back(worker=self._worker)
        yield workers.leave(worker=self._worker)

    def _endless(self, row: ClaimedJob) -> RowlockError:
        """The error at the limit; what was claimed is handed back when we leave."""
        often = ", ".join(f"{name} ({count})" for name, count in Counter(a.task for a in self._attempts).most_common(3))
        return RowlockError(
            f"{self._limit} attempts were run and {row.task} is still due; most often ran {often}; if no handler "
            "enqueues itself forever, give drain a larger limit="
        )


def _lanes(names: Queues) -> list[Lane]:
    return Floors().lanes(names.order(), below=True)


def _is_for_the_test(error: BaseException) -> bool:
    """Whether it is Ctrl-C, or what a test framework raises to end the test, and so no outcome of the job."""
    return not isinstance(error, Exception | SystemExit | asyncio.CancelledError)
