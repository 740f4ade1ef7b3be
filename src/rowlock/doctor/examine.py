"""Examine: gather facts, try claims and jobs, compare clocks, and judge."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from importlib.metadata import version
from typing import NamedTuple

from rowlock.db.database import Database
from rowlock.doctor.claims import judge_claims, judge_load
from rowlock.doctor.locks import folded, judge_duties, judge_locks, judge_rows
from rowlock.doctor.schema import judge_schema
from rowlock.doctor.server import judge_clock, judge_server
from rowlock.doctor.tables import judge_tables
from rowlock.doctor.work import judge_work
from rowlock.doctor.workers import judge_fleet
from rowlock.errors import InvalidOption
from rowlock.model.checkup import Checkup, Finding
from rowlock.store import schema
from rowlock.store.doctor import queries
from rowlock.store.doctor.checkup_facts import Facts, gather
from rowlock.store.doctor.trial import Trial, try_out

TARGET = timedelta(minutes=1)
_CLOCK_LOOKS = 3


class _Clock(NamedTuple):
    """How far this machine's clock is ahead of the server's, and how unsure that is."""

    ahead: timedelta
    unsure: timedelta


def examine(database: Database, *, target: timedelta, longest: timedelta) -> Checkup:
    """A checkup of everything, with a trial that is undone.

    `longest` is for how long the app keeps ended jobs at most.
    """
    if target <= timedelta(0):
        raise InvalidOption(f"target={target!r} must be a timedelta of more than zero; write timedelta(seconds=60)")
    ours = version("rowlock")
    facts = database.converse(lambda: gather(database.schema, longest=longest))
    trial = _try_out(database, facts, ours)
    clock = min((_compare_clocks(database) for _ in range(_CLOCK_LOOKS)), key=lambda one: one.unsure)
    at = facts.stats.at if facts.stats else database.run(schema.now())[0]
    return Checkup(at, folded(_judge(facts, trial, clock, target=target, version=ours)))


class Inspection(NamedTuple):
    """The facts that were read without a trial, and their checkup."""

    facts: Facts
    checkup: Checkup


async def ainspect(database: Database, *, longest: timedelta, target: timedelta = TARGET) -> Inspection:
    """As `examine`, read-only: without a trial, and without the checks that need one."""
    facts = await database.aconverse(lambda: gather(database.schema, longest=longest))
    clock = min([await _acompare_clocks(database) for _ in range(_CLOCK_LOOKS)], key=lambda one: one.unsure)
    at = facts.stats.at if facts.stats else (await database.arun(schema.now()))[0]
    findings = _judge(facts, None, clock, target=target, version=version("rowlock"))
    return Inspection(facts, Checkup(at, folded(findings)))


def _try_out(database: Database, facts: Facts, ours: str) -> Trial:
    if facts.server is not None and facts.server.recovering:
        return Trial(unknown=dict.fromkeys(("claim", "job"), "a standby takes no writes"))
    return database.converse(lambda: try_out(_looked_into(facts), version=ours))


def _looked_into(facts: Facts) -> list[str]:
    """The queues with due jobs, the most first, and those of live workers."""
    if facts.stats is None:
        return []
    queues = facts.stats.queues
    due = {name: queue.runnable.value for name, queue in queues.items() if queue.runnable and not queue.paused}
    worked = [
        queue
        for worker in facts.stats.fleet.workers or ()
        if worker.lease_left > timedelta(0)
        for queue in worker.queues
    ]
    with_jobs = sorted((name for name, jobs in due.items() if jobs), key=lambda name: -due[name])
    return list(dict.fromkeys([*with_jobs, *worked]))


def _compare_clocks(database: Database) -> _Clock:
    """Read the server's clock between two readings of our own."""
    before = time.time()
    [there] = database.run(queries.clock())
    return _compared(before, there, time.time())


async def _acompare_clocks(database: Database) -> _Clock:
    before = time.time()
    [there] = await database.arun(queries.clock())
    return _compared(before, there, time.time())


def _compared(before: float, there: float, after: float) -> _Clock:
    return _Clock(timedelta(seconds=(before + after) / 2 - there), timedelta(seconds=max(0.0, after - before) / 2))


def _judge(facts: Facts, trial: Trial | None, clock: _Clock, *, target: timedelta, version: str) -> Iterator[Finding]:
    yield from judge_locks(facts)
    yield from judge_duties(facts)
    yield from judge_rows(facts)
    yield from judge_server(facts)
    yield from judge_clock(facts, ahead=clock.ahead, unsure=clock.unsure)
    yield from judge_schema(facts)
    yield from judge_tables(facts)
    yield from judge_claims(facts, trial)
    yield from judge_work(facts, target=target)
    yield from judge_fleet(facts, version=version)
    if trial is not None:
        yield from judge_load(facts, trial)
