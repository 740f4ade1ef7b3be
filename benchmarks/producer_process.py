"""Connections that each insert one job per transaction, as fast as PostgreSQL answers, in a process of their own.

It reads its order as JSON and says "ready" when its connections are open. For every line with an insert's name and a
number of seconds it inserts for so long, and says how many jobs that were.

The statements go out by libpq's own call, which lets other threads run while it waits: a cursor costs ten times as much
Python, and on two cores the clients would then be what is measured.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Self, TypedDict

import psycopg
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn

from benchmarks.piped import Piped
from rowlock.model.ids import new_id


class Insert(TypedDict):
    """A statement that inserts one job, its parameters by number; another id takes the place of the first each time."""

    text: str
    values: list[str | None]
    place_of_id: int


class Order(TypedDict):
    """What a process of producers is to do."""

    conninfo: str
    connections: int
    inserts: dict[str, Insert]


class ProducerProcess(Piped):
    """The benchmark's end."""

    def __init__(self, order: Order) -> None:
        super().__init__("benchmarks.producer_process")
        self._order = order

    def __enter__(self) -> Self:
        super().__enter__()
        self.say(json.dumps(self._order))
        self.hear()
        return self

    def go(self, insert: str, lasting: timedelta) -> None:
        """Let it begin."""
        self.say(f"{insert} {lasting.total_seconds()}")

    def count(self) -> int:
        """How many jobs it has inserted, when it is done."""
        return int(self.hear())


def _produce(name: str, insert: Insert, seconds: float, connection: PGconn) -> int:
    """Insert, one job per transaction, until the time is up."""
    values, count = [None if value is None else value.encode() for value in insert["values"]], 0
    place = insert["place_of_id"]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        values[place] = new_id().encode()
        result = connection.exec_prepared(name.encode(), values)  # type: ignore[arg-type]  # None is null
        if result.status != ExecStatus.TUPLES_OK:
            raise RuntimeError(result.error_message.decode())
        count += 1
    return count


def _main() -> None:
    order: Order = json.loads(sys.stdin.readline())
    inserts = order["inserts"]
    with ExitStack() as stack, ThreadPoolExecutor(order["connections"]) as threads:
        connections = [
            # As plain as a user's, because it is in users' transactions that jobs are enqueued one by one.
            stack.enter_context(psycopg.connect(order["conninfo"], application_name="bench producer")).pgconn
            for _ in range(order["connections"])
        ]
        for connection in connections:
            for name, insert in inserts.items():
                connection.prepare(name.encode(), insert["text"].encode())
        print("ready", flush=True)
        for line in sys.stdin:
            name, seconds = line.split()
            produce = partial(_produce, name, inserts[name], float(seconds))
            print(sum(threads.map(produce, connections)), flush=True)


if __name__ == "__main__":
    _main()
