"""Thread connection: a sync connection that reconnects, one for each thread."""

from __future__ import annotations

import os
import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from math import inf
from typing import TypeVar

import psycopg

from rowlock.db.errors import Blame, ErrorKind, Refused, Unreachable, blame, error_kind, first_line
from rowlock.db.session import Server, Session, connect, converse, run
from rowlock.errors import SchemaMissing
from rowlock.store import workers
from rowlock.store.query import Conversation, Query
from rowlock.store.workers import DutyTurn

T = TypeVar("T")


class ReconnectingSyncConnection:
    """One sync connection that is opened again after it breaks; Unreachable as long as it cannot be."""

    def __init__(self, server: Server | str, schema: str, *, name: str, deadline: float = inf) -> None:
        self.schema = schema
        self.deadline = deadline
        self.until = inf  # by time.monotonic(): what is not answered by then is given up, and nothing more is said
        self._server = server
        self._name = name
        self._connection: Session | None = None

    def open(self) -> Session:
        """The open connection."""
        if self.until <= time.monotonic():
            raise Unreachable("there was no time left to say it")
        if self._connection is None or self._connection.closed:
            with self._reaching():
                left = self.until - time.monotonic()
                self._connection = connect(
                    self._server, name=self._name, deadline=min(self.deadline, left), engine=True
                )
        self._connection.deadline, self._connection.until = self.deadline, self.until
        return self._connection

    @property
    def is_open(self) -> bool:
        """Whether there is a connection, as far as is known without a word to the server."""
        return self._connection is not None and not self._connection.closed

    def rest(self, bell: socket.socket, timeout: float) -> None:
        """Wait until there is something to read from `bell`, at most so many seconds, or until the server hangs up."""
        connection = self._connection
        with selectors.DefaultSelector() as selector:
            selector.register(bell, selectors.EVENT_READ)
            if connection is not None and not connection.closed:
                selector.register(connection, selectors.EVENT_READ)
            ready = [key.fileobj for key, _ in selector.select(timeout)]
        if connection is not None and connection in ready:
            try:
                connection.pgconn.consume_input()  # a notice, a changed setting; or the end
            except psycopg.OperationalError:
                connection.close()

    def run(self, query: Query[T]) -> list[T]:
        """Run one query; Refused when PostgreSQL will never accept what it carries."""
        with self._reaching():
            return run(self.open().cursor(), query, self.schema)

    def converse(self, conversation: Conversation[T]) -> T:
        """Hold a conversation, each of its statements for itself."""
        with self._reaching():
            return converse(lambda said: run(self.open().cursor(), said, self.schema), conversation)

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:  # a server that has become read-only says so by another kind of error
            kind = error_kind(error)
            if kind is ErrorKind.REFUSED:
                raise Refused(error) from error
            if kind is not ErrorKind.GONE:
                raise
            self.close()
            raise Unreachable(first_line(error)) from error

    @contextmanager
    def blaming(self) -> Iterator[None]:
        """Refused also where what is said may be the reason, and not the server: a batch can then be taken apart."""
        try:
            with self._reaching():
                yield
        except psycopg.Error as error:
            if blame(error) is Blame.SURROUNDINGS:
                raise
            raise Refused(error, certain=False) from error

    @contextmanager
    def sweep(self, duty: str, *, worker: str | None = None) -> Iterator[bool]:
        """A transaction that has a duty of the fleet's to itself; False when another has it.

        A `worker` has it only as long as its own lease holds. Refused as by `blaming`.
        """
        connection = self.open()
        with self.blaming(), connection.transaction():
            yield self._take(duty, workers.take_duty(duty, worker=worker)).ours

    def turn(self, duty: str, *, every: timedelta) -> DutyTurn:
        """Take the turn of what one worker of the fleet does every so often, if it is due; then `finish` it."""
        return self._take(duty, workers.take_turn(duty, every=every))

    def finish(self, duty: str) -> None:
        """Say that the duty whose turn we had is done; else it is due again within a minute."""
        self.run(workers.finish_duty(duty))

    def _take(self, duty: str, query: Query[DutyTurn]) -> DutyTurn:
        [taken] = self.run(query)
        if not taken.exists:
            raise SchemaMissing(
                f"table duties of schema {self.schema!r} has lost its row {duty!r}, so nobody does that any more; "
                "insert the row again"
            )
        return taken

    def abort(self) -> None:
        """Let whatever is being said fail at once; from any thread."""
        connection = self._connection
        if connection is not None and not connection.closed:
            with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as end:
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
