"""What the notification costs those who enqueue: 32 connections, one job per transaction, while a worker is busy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Any

from benchmarks.arena import Arena
from benchmarks.limit import new_jobs
from benchmarks.measure import Broken, Case, Effort, Target, Track, interleave
from benchmarks.producer_process import Insert, Order, ProducerProcess
from benchmarks.tasks import SCHEMA, nap, noop
from benchmarks.worker_process import WorkerProcess
from rowlock import Task
from rowlock.store import enqueue
from rowlock.store.query import numbered

_CONNECTIONS = 32
_PROCESSES = 4
_SLOTS = 100
_BACKLOG = 5_000
_BUSY_WITHIN = 10.0


def measure(arena: Arena, effort: Effort, track: Track) -> list[Case]:
    """The same insert with and without its notification, from the same clients, beside the same worker.

    `busy`: every slot is taken, by handlers of 50 ms. `stream`: no-op handlers, and a worker that keeps up with the
    producers, so that it is now and then out of work and wants to be told.
    """
    lasting = timedelta(milliseconds=effort.sized(full=3_000, quick=1_000))
    with ExitStack() as stack:
        crowd = [stack.enter_context(ProducerProcess(_order(arena))) for _ in range(_PROCESSES)]
        rates = interleave(
            {
                "busy": partial(_busy, arena, crowd, "nap", lasting),
                "busy, no notification": partial(_busy, arena, crowd, "silent-nap", lasting),
                "stream": partial(_stream, arena, crowd, "noop", lasting),
                "stream, no notification": partial(_stream, arena, crowd, "silent-noop", lasting),
            },
            rounds=effort.repeated(full=5, quick=3),
            track=track,
        )
    return [
        Case(
            scenario="producers",
            case=case,
            unit="jobs/s",
            rowlock_rounds=rates[case],
            limit_rounds=rates[f"{case}, no notification"],
            limit_is=f"the same insert without any notification, beside the same worker, {_CONNECTIONS} connections",
            target=target,
        )
        for case, target in {"busy": Target(ratio_at_least=0.9), "stream": None}.items()
    ]


def _order(arena: Arena) -> Order:
    text, names = numbered("job_put", SCHEMA)
    silent = without_notification(text)
    return Order(
        conninfo=arena.conninfo,
        connections=_CONNECTIONS // _PROCESSES,
        inserts={
            "nap": _insert(text, names, nap),
            "silent-nap": _insert(silent, names, nap),
            "noop": _insert(text, names, noop),
            "silent-noop": _insert(silent, names, noop),
        },
    )


def _insert(text: str, names: Sequence[str], task: Task[[int], Any]) -> Insert:
    said = enqueue.insert_one(new_jobs(1)[0]._replace(task=task.name)).params
    return Insert(text=text, values=[said[name] for name in names], place_of_id=names.index("id"))


def without_notification(text: str) -> str:
    """The statement as it would be if nobody needed waking: without its last column, `woken`."""
    head, woken, tail = text.rpartition(") as woken\n")
    insert, column, _ = head.rpartition(",\n    (\n        select rowlock.notify(")
    if not woken or not column:
        raise Broken("job_put.sql has no column `woken` any more; say in benchmarks/producers.py what to leave out")
    return f"{insert}\n{tail}"


def _busy(arena: Arena, crowd: Sequence[ProducerProcess], insert: str, lasting: timedelta) -> float:
    arena.fill([nap.bind(n) for n in range(_BACKLOG)])
    with WorkerProcess(slots=_SLOTS):
        _wait_busy(arena)
        count = _produce(crowd, insert, lasting)
    _verify(arena, count + _BACKLOG)
    return count / lasting.total_seconds()


def _stream(arena: Arena, crowd: Sequence[ProducerProcess], insert: str, lasting: timedelta) -> float:
    arena.fill([])
    with WorkerProcess(slots=_SLOTS):
        count = _produce(crowd, insert, lasting)
    _verify(arena, count)
    return count / lasting.total_seconds()


def _produce(crowd: Sequence[ProducerProcess], insert: str, lasting: timedelta) -> int:
    for producers in crowd:
        producers.go(insert, lasting)
    return sum(producers.count() for producers in crowd)


def _wait_busy(arena: Arena) -> None:
    """Until every slot of the worker is taken."""
    deadline = time.monotonic() + _BUSY_WITHIN
    while arena.ask(f"select count(*) from {SCHEMA}.jobs where state = 'running'") < _SLOTS:
        if time.monotonic() > deadline:
            raise Broken("the worker has free slots, with thousands of jobs to do")
        time.sleep(0.01)


def _verify(arena: Arena, count: int) -> None:
    """Every insert that was answered is there, waiting or ended."""
    there = arena.ask(f"select (select count(*) from {SCHEMA}.jobs) + (select count(*) from {SCHEMA}.history)")
    if there != count:
        raise Broken(f"{count} jobs were enqueued, and {there} are there")
