"""Session: one connection of ours, its settings and deadlines, and how queries run on it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from math import ceil, inf, isinf
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import AsyncTransaction, IsolationLevel, Transaction, waiting
from psycopg.abc import PQGen
from psycopg.adapt import AdaptersMap
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow
from psycopg.types.string import TextLoader

from rowlock.db.address import with_host_addresses
from rowlock.store.query import Conversation, Copy, Explained, Query, Statement, statement

T = TypeVar("T")

Connection = psycopg.Connection[TupleRow]
AsyncConnection = psycopg.AsyncConnection[TupleRow]
Cursor = psycopg.Cursor[TupleRow]
AsyncCursor = psycopg.AsyncCursor[TupleRow]

# What the engine needs of a session, whatever the role's or the database's defaults are.
# - Statistics of a queue are always wrong, so nothing is left to them: with these off, each statement has one plan,
#   index look-ups in nested loops. Then it need be made only once: planning again doubled the time of a small claim.
# - Every name in our SQL is qualified; nothing of the caller's search_path can stand in front of pg_catalog.
_SETTINGS = {
    "enable_seqscan": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "search_path": "pg_catalog",
    "array_nulls": "on",
    "timezone": "UTC",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "statement_timeout": "0",
}
# What cannot be said inside a transaction, or is of no use there.
# - The statements' decisions are argued for READ COMMITTED. (default_transaction_read_only is left alone: it is how a
#   server is kept from being written to while another takes over, and what we wrote then would be lost.)
# - The server notices within a minute that our machine is gone, and lets go of what we had locked; and that it is there
#   but reads nothing, as a stopped process does: its backend blocks in send, inside a transaction, and keeps vacuum
#   from the dead rows of the whole database. Keepalives are answered by the kernel and do not help.
_SESSION_SETTINGS = {
    "default_transaction_isolation": "read committed",
    "idle_session_timeout": "0",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "60s",
}
# How often a busy server looks whether we are still there: what we gave up on must not run on, beside its repetition.
# Not every platform can look; the others refuse to be told to.
_LOOKS_FOR_CLIENT: LiteralString = (
    "pg_catalog.set_config('client_connection_check_interval',"
    " case when pg_catalog.version() like '%linux%' then '1s' else '0' end, {local})"
)
# A statement that its client has given up on is ended by the server, too, a little later.
_STATEMENT_SHARE, _STATEMENT_SLACK = 1.2, 1.0
_TRANSACTION_TIMEOUT_SINCE = 170000

_CONNECT: dict[str, Any] = {
    "autocommit": True,
    "client_encoding": "utf8",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
_PREPARE_AT_ONCE = 0
# libpq's own word for it: nothing shorter is accepted.
_SHORTEST_CONNECT_TIMEOUT = 2
_LONGEST_CONNECT_TIMEOUT = 10
_INSIST = 50
WHO: LiteralString = "select pg_catalog.pg_backend_pid()"
# A server that waits for a lock gives up by itself, a little before we would hang up on it.
_LOCK_SHARE = 0.9
# One that waits for our next word in a transaction for so many deadlines will not hear it: we have given up on that
# connection, and it does not know. It must not keep what it has locked: a sweep's lock kept everybody from rescuing.
_SILENCE_SHARE = 2.0
_LEAST_SILENCE = 1.0
_WAIT_INTERVAL = 0.1
_EXPLAIN = "explain (analyze, buffers, timing off, format json)"


@dataclass(frozen=True, slots=True)
class Server:
    """Where PostgreSQL is.

    `pooler` says whether a pooler that lends connections for one transaction stands before it (None: find out), and
    `listen` is an address around it, on which notifications come through. With
    `read_timeout` sessions cannot write, and none of their statements takes longer than so many seconds.
    """

    conninfo: str
    pooler: bool | None = None
    listen: str | None = None
    read_timeout: float | None = None


class CommitLost(psycopg.OperationalError):
    """A transaction that could only be rolled back: PostgreSQL replies to its COMMIT with ROLLBACK, and no error."""


class _Bounded:
    """What sync and async sessions have in common: how long they wait for an answer, and what lies between."""

    deadline: float = inf  # seconds for one exchange with the server
    until: float = inf  # and no exchange beyond this moment, by time.monotonic()
    pooled: bool = False  # a pooler lends us another server connection for every transaction
    settings: str = ""  # the statement that makes one transaction behind a pooler ours

    def limited(self, exchange: PQGen[T], timeout: float | None) -> PQGen[T]:
        """An exchange that fails when its time is over. No cancel request and no wait for its answer follow: on a
        connection that leads nowhere each of them would hang too (psycopg's own time-outs took 7 to 12 s).
        """
        limit = min(time.monotonic() + (self.deadline if timeout is None else timeout), self.until)
        try:
            wanted = next(exchange)
            while True:
                ready = yield wanted
                # An answer that has come is taken, however late we look: a handler may have blocked the loop.
                if not ready and time.monotonic() > limit:
                    raise Late("no answer from the server in time")
                wanted = exchange.send(ready)
        except StopIteration as end:
            answer: T = end.value
            return answer


class Late(psycopg.OperationalError):
    """No reply in time."""


def _check_commits(connection: Session | AsyncSession) -> None:
    """Refuse to commit what is no transaction, or one that has failed: its COMMIT would look as if it had worked."""
    if connection.pgconn.transaction_status != TransactionStatus.INTRANS:
        raise CommitLost("the transaction has failed, or was ended by somebody else, and cannot be committed")


class Session(_Bounded, psycopg.Connection[TupleRow]):
    """A sync connection of ours."""

    def wait(self, gen: PQGen[T], interval: float = _WAIT_INTERVAL, timeout: float | None = None) -> T:
        """Wait for an exchange with the server; one that is late or interrupted costs the connection, at once."""
        try:
            return waiting.wait(self.limited(gen, timeout), self.pgconn.socket, interval=min(interval, self.deadline))
        except (KeyboardInterrupt, Late):
            self._give_up()
            raise

    def _give_up(self) -> None:
        if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
            self.pgconn.finish()

    @contextmanager
    def transaction(self, savepoint_name: str | None = None, force_rollback: bool = False) -> Iterator[Transaction]:  # noqa: FBT001, FBT002  psycopg's
        """A transaction; behind a pooler it begins by making the borrowed server connection ours."""
        begins = self.pgconn.transaction_status == TransactionStatus.IDLE
        with super().transaction(savepoint_name, force_rollback) as transaction:
            if self.pooled and begins:
                self.execute(self.settings)
            yield transaction
            if begins:
                _check_commits(self)


class AsyncSession(_Bounded, psycopg.AsyncConnection[TupleRow]):
    """An async connection of ours."""

    async def wait(self, gen: PQGen[T], interval: float = _WAIT_INTERVAL, timeout: float | None = None) -> T:
        """Wait for an exchange with the server; one that is late or cancelled costs the connection, at once."""
        try:
            return await waiting.wait_async(
                self.limited(gen, timeout), self.pgconn.socket, interval=min(interval, self.deadline)
            )
        except (asyncio.CancelledError, KeyboardInterrupt, Late):
            self._give_up()
            raise

    def _give_up(self) -> None:
        if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
            self.pgconn.finish()

    @asynccontextmanager
    async def transaction(
        self,
        savepoint_name: str | None = None,
        force_rollback: bool = False,  # noqa: FBT001, FBT002  psycopg's
    ) -> AsyncIterator[AsyncTransaction]:
        """A transaction; behind a pooler it begins by making the borrowed server connection ours."""
        begins = self.pgconn.transaction_status == TransactionStatus.IDLE
        async with super().transaction(savepoint_name, force_rollback) as transaction:
            if self.pooled and begins:
                await self.execute(self.settings)
            yield transaction
            if begins:
                _check_commits(self)


def connect(server: Server | str, *, name: str, deadline: float = inf, engine: bool = False) -> Session:
    """Open a session of ours; `name` is what pg_stat_activity shows, `deadline` the seconds that an answer may take.

    `engine` is for workers' own sessions: the server, too, ends a statement a little after its deadline. Of others, a
    COPY may take as long as it makes progress.
    """
    server = server_at(server)
    try:
        connection = Session.connect(server.conninfo, application_name=name, **_options(deadline))
    except psycopg.Error as error:  # psycopg's frames keep the socket of an attempt that has timed out
        raise error.with_traceback(None) from None
    connection.deadline = deadline
    try:
        who = None if server.pooler is not None else _insist(connection, WHO)
        configure = partial(_configure, connection.info.server_version, deadline, server.read_timeout, engine=engine)
        if is_pooled(server, who, connection):
            connection.pooled, connection.settings = True, configure(local=True)
            connection.isolation_level = IsolationLevel.READ_COMMITTED
            connection.prepare_threshold = None
        else:
            _insist(connection, configure(local=False))
            connection.prepare_threshold = _PREPARE_AT_ONCE
    except BaseException:
        connection.close()
        raise
    read_as_text(connection.adapters)
    return connection


async def aconnect(server: Server | str, *, name: str, deadline: float = inf, engine: bool = False) -> AsyncSession:
    """As `connect`, for async code."""
    server = server_at(server)
    try:
        connection = await AsyncSession.connect(
            await with_host_addresses(server.conninfo), application_name=name, **_options(deadline)
        )
    except psycopg.Error as error:  # psycopg's frames keep the socket of an attempt that has timed out
        raise error.with_traceback(None) from None
    connection.deadline = deadline
    try:
        who = None if server.pooler is not None else await _ainsist(connection, WHO)
        configure = partial(_configure, connection.info.server_version, deadline, server.read_timeout, engine=engine)
        if is_pooled(server, who, connection):
            connection.pooled, connection.settings = True, configure(local=True)
            await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
            connection.prepare_threshold = None
        else:
            await _ainsist(connection, configure(local=False))
            connection.prepare_threshold = _PREPARE_AT_ONCE
    except BaseException:  # a worker that is stopped while it starts cancels us here
        await connection.close()
        raise
    read_as_text(connection.adapters)
    return connection


def _insist(connection: Session, said: LiteralString) -> TupleRow | None:
    """One of a session's first statements: until our settings replace them, the role's own time-outs are in force, and
    a short one may end the very statement that replaces it.
    """
    for _ in range(_INSIST):
        with suppress(psycopg.errors.QueryCanceled):
            return connection.execute(said, prepare=False).fetchone()
    return connection.execute(said, prepare=False).fetchone()


async def _ainsist(connection: AsyncSession, said: LiteralString) -> TupleRow | None:
    """As `_insist`, for async code."""
    for _ in range(_INSIST):
        with suppress(psycopg.errors.QueryCanceled):
            return await (await connection.execute(said, prepare=False)).fetchone()
    return await (await connection.execute(said, prepare=False)).fetchone()


def server_at(server: Server | str) -> Server:
    """The server that an address means."""
    return server if isinstance(server, Server) else Server(server)


def _options(deadline: float) -> dict[str, Any]:
    seconds = _LONGEST_CONNECT_TIMEOUT if isinf(deadline) else max(_SHORTEST_CONNECT_TIMEOUT, ceil(deadline))
    return {**_CONNECT, "connect_timeout": min(seconds, _LONGEST_CONNECT_TIMEOUT)}


def is_pooled(server: Server, who: TupleRow | None, connection: Connection | AsyncConnection) -> bool:
    """A pooler makes up the process that it tells us of when we connect: the backend itself knows better."""
    return bool(server.pooler) if who is None else who[0] != connection.pgconn.backend_pid


@cache
def _configure(version: int, deadline: float, timeout: float | None, *, engine: bool, local: bool) -> LiteralString:
    """The statement that makes a session ours; with `local`, only the transaction that it is said in."""
    settings = {**_SETTINGS} if local else {**_SETTINGS, **_SESSION_SETTINGS}
    if timeout is not None:
        settings["statement_timeout"] = f"{int(timeout * 1000)}ms"
        settings["transaction_read_only" if local else "default_transaction_read_only"] = "on"
    if version >= _TRANSACTION_TIMEOUT_SINCE:
        settings |= {"transaction_timeout": "0"}
    bounds = {
        "lock_timeout": deadline * _LOCK_SHARE,
        "idle_in_transaction_session_timeout": max(deadline * _SILENCE_SHARE, _LEAST_SILENCE),
    }
    if engine:
        bounds["statement_timeout"] = deadline * _STATEMENT_SHARE + _STATEMENT_SLACK
    settings |= {name: "0" if isinf(seconds) else f"{int(seconds * 1000)}ms" for name, seconds in bounds.items()}
    said = ", ".join(
        f"pg_catalog.set_config('{name}', '{value}', {str(local).lower()})" for name, value in settings.items()
    )
    return f"select {said}, {_LOOKS_FOR_CLIENT.format(local=str(local).lower())}"


def read_as_text(adapters: AdaptersMap) -> None:
    """Leave ids, JSON and times as the text they came as: the hot path never looks inside."""
    for kind in ("uuid", "json", "timestamptz"):
        adapters.register_loader(kind, TextLoader)


def run(cursor: Cursor, query: Query[T] | Copy, schema: str) -> list[T]:
    """Run one query, or one copy; behind a pooler, which lends a session for one transaction, in a transaction."""
    if _is_between_transactions(cursor.connection):
        with cursor.connection.transaction():
            return run(cursor, query, schema)
    if isinstance(query, Copy):
        with cursor.copy(statement(query.name, schema)) as copy:
            for block in query.blocks:
                copy.write(block)
        return []
    text = statement(query.name, schema)
    if isinstance(query, Explained):
        text = f"{_EXPLAIN} {statement(query.name, schema)}"
    cursor.execute(text, query.params)
    return [query.read(row) for row in cursor.fetchall()] if cursor.description else []


async def arun(cursor: AsyncCursor, query: Query[T] | Copy, schema: str) -> list[T]:
    """As `run`, for async code."""
    if _is_between_transactions(cursor.connection):
        async with cursor.connection.transaction():
            return await arun(cursor, query, schema)
    if isinstance(query, Copy):
        async with cursor.copy(statement(query.name, schema)) as copy:
            for block in query.blocks:
                await copy.write(block)
        return []
    text = statement(query.name, schema)
    if isinstance(query, Explained):
        text = f"{_EXPLAIN} {statement(query.name, schema)}"
    await cursor.execute(text, query.params)
    return [query.read(row) for row in await cursor.fetchall()] if cursor.description else []


def _is_between_transactions(connection: Connection | AsyncConnection) -> bool:
    return (
        isinstance(connection, Session | AsyncSession)
        and connection.pooled
        and connection.pgconn.transaction_status == TransactionStatus.IDLE
    )


def converse(run_one: Callable[[Statement], list[Any]], conversation: Conversation[T]) -> T:
    """Hold a conversation on whatever connection `run_one` means, in whatever transaction is open there."""
    try:
        said = next(conversation)
        while True:
            try:
                rows = run_one(said)
            except BaseException as error:
                said = conversation.throw(error)
            else:
                said = conversation.send(rows)
    except StopIteration as end:
        answer: T = end.value
        return answer


async def aconverse(run_one: Callable[[Statement], Awaitable[list[Any]]], conversation: Conversation[T]) -> T:
    """Hold a conversation on whatever connection `run_one` means, in whatever transaction is open there."""
    try:
        said = next(conversation)
        while True:
            try:
                rows = await run_one(said)
            except BaseException as error:
                said = conversation.throw(error)
            else:
                said = conversation.send(rows)
    except StopIteration as end:
        answer: T = end.value
        return answer
