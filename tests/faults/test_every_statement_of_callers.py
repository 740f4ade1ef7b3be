"""Crash at every statement, as those see it who enqueue and cancel: whatever they are told is so.

Each scenario is recorded once; then it is played again for each of its statements and each thing that can happen to
one. `Killed` is here the end of the connection and of every attempt to open another: to the database, that is what a
killed process is. At the end of this file the processes are real, and so is SIGKILL.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Job, Key, Rowlock, RowlockError, Task
from rowlock.db import database
from rowlock.model.row import ClaimedJob
from rowlock.store import enqueue as enqueuing
from tests.depth import deep, deep_unless
from tests.engine import Engine
from tests.faults.crew import Member
from tests.faults.nursery import Nursery
from tests.faults.oracle import Oracle
from tests.faults.proxy import Proxy
from tests.faults.seeds import Trial
from tests.faults.striking import KILLED_AFTER, KILLED_BEFORE, MODES, Mode, Point, points, strike
from tests.waiting import until

Db = psycopg.Connection[TupleRow]
Start = Callable[[Sequence[str]], Member]

# A black hole is known by the first: whoever is late for another reason is told of an error, which is right as well.
SHORT, LONG = timedelta(seconds=0.4), timedelta(seconds=10)
# What the caller is not told of, once it has reached the database.
PASSING = {"reply lost", "deadlock", "read-only"}
BULK = 4
REPLACE = Key("k", taken="replace")
CLEAR = """
    delete from rowlock.jobs; delete from rowlock.history; delete from rowlock.keys; delete from rowlock.events;
    delete from rowlock.signals
"""


@dataclass(frozen=True)
class Caller:
    """A program that has just started."""

    app: Rowlock
    task: Task[[int], None]


@contextmanager
def caller(url: str, *, deadline: timedelta = LONG) -> Iterator[Caller]:
    with Rowlock(url, deadline=deadline) as app:

        @app.task(name="t")
        def t(n: int) -> None:
            return None

        yield Caller(app, t)


@dataclass(frozen=True)
class Scenario:
    """What a caller does, when jobs with these keys are there, and how many more it makes, if it makes any."""

    do: Callable[[Caller], list[Job[None]]]
    held: tuple[str, ...] = ()
    makes: int = 1


async def _enqueue_in_a_loop(caller: Caller) -> list[Job[None]]:
    async with caller.app:
        return [await caller.task.aenqueue(1)]


def _enqueue_in_bulk(caller: Caller, *keys: str | None) -> list[Job[None]]:
    return caller.app.enqueue_many([caller.task.using(key=key).bind(n) for n, key in enumerate(keys)])


SCENARIOS = {
    "plain": Scenario(lambda caller: [caller.task.enqueue(1)]),
    "in a loop": Scenario(lambda caller: asyncio.run(_enqueue_in_a_loop(caller))),
    "with a key": Scenario(lambda caller: [caller.task.using(key="k").enqueue(1)]),
    "with a key that is held": Scenario(lambda caller: [caller.task.using(key="k").enqueue(1)], ("k",), 0),
    "with a key to replace": Scenario(lambda caller: [caller.task.using(key=REPLACE).enqueue(2)]),
    "with a key that is held, to replace": Scenario(
        lambda caller: [caller.task.using(key=REPLACE).enqueue(2)], ("k",), 0
    ),
    "in bulk": Scenario(lambda caller: _enqueue_in_bulk(caller, *[None] * BULK), (), BULK),
    "in bulk, with keys": Scenario(lambda caller: _enqueue_in_bulk(caller, "a", "b", "c", None), ("b",), 3),
}


@pytest.fixture(autouse=True)
def _bulk_is_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bulk goes by COPY from hundreds on; what can happen to it is the same with a few."""
    monkeypatch.setattr(enqueuing, "LOAD_FROM", BULK)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers wait as often before they say it again, but not as long: a killed one is refused hundreds of times."""
    monkeypatch.setattr(database, "_PAUSES", tuple(pause / 20 for pause in database._PAUSES))


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with Proxy(url) as proxy:
        yield proxy


def abandon(proxy: Proxy) -> Callable[[], None]:
    """The end of a process, as the database sees it: its only connection is cut by what strikes, and no other comes."""
    return proxy.refuse


def recorded(proxy: Proxy, do: Callable[[], object]) -> list[Point]:
    """The statements of a run in which all goes well."""
    proxy.forget()
    do()
    return points(proxy.passed)


@contextmanager
def noted(what: str) -> Iterator[None]:
    """Say with a failure in which of the many cases it was."""
    try:
        yield
    except AssertionError as error:
        error.add_note(what)
        raise


@contextmanager
def struck(proxy: Proxy, point: Point, mode: Mode) -> Iterator[None]:
    """Inside it the statement is struck; afterwards the network is whole."""
    proxy.forget()
    happened = strike(proxy, point, mode, kill=abandon(proxy))
    try:
        yield
        until(happened.is_set, what=f"{mode} at {point}")
    finally:
        proxy.forget()
        proxy.reset()
        proxy.heal()


@deep
@pytest.mark.parametrize("name", deep_unless(lambda name: name == "plain", SCENARIOS))
def test_an_enqueue_is_acknowledged_or_it_can_be_sent_again(
    name: str, proxy: Proxy, url: str, db: Db, trial: Trial
) -> None:
    scenario = SCENARIOS[name]
    begin_anew(scenario, db)
    everywhere = recorded(proxy, lambda: told(scenario, proxy))
    assert {"job_put", "job_put_keyed", "job_enqueue", "job_load"} & {point.name for point in everywhere}

    for point, mode in itertools.product(everywhere, MODES):
        begin_anew(scenario, db)
        before = live(db)
        with struck(proxy, point, mode):
            answer = told(scenario, proxy, deadline=SHORT if mode.name == "black hole" else LONG)

        with noted(f"{mode} at {point}, and was told {answer}"):
            assert answer is not None or mode.name not in PASSING or point.name == "select"
            after = live(db)
            assert len(after - before) in {0, scenario.makes}, "a part of it is there"
            if answer is not None:
                assert not mode.kills
                assert {job.id for job in answer if job.created} == after - before
                assert {job.id for job in answer if not job.created} <= before
            again = told(scenario, proxy)
            assert again is not None
            assert {job.id for job in again if job.created} == live(db) - after
            assert {job.id for job in again if not job.created} <= after
    trial.counts.pop("seed")
    trial.count(statements=len(everywhere), runs=len(everywhere) * len(MODES))


@deep
@pytest.mark.parametrize("state", ["ready", "running"])
def test_a_cancel_is_answered_or_it_can_be_asked_again(
    state: str, proxy: Proxy, db: Db, trial: Trial, worker: Engine
) -> None:
    everywhere = recorded(proxy, lambda: cancelled(proxy, a_job(db, state, worker)[0]))
    assert {"job_lock", "job_cancel"} <= {point.name for point in everywhere}

    for point, mode in itertools.product(everywhere, MODES):
        job, rows = a_job(db, state, worker)
        with struck(proxy, point, mode):
            answer = cancelled(proxy, job, deadline=SHORT if mode.name == "black hole" else LONG)

        with noted(f"{mode} at {point}, and was told {answer}"):
            assert answer or mode.name not in PASSING or point.name == "select"
            if rows:  # whoever asked may have locked it, and may not be known to be gone yet
                until(lambda: worker.settle(*rows), what="a settle")  # noqa: B023  it is called in here
            [(ended, events)] = db.execute(
                """
                select state, (select count(*) from rowlock.events where kind = 'cancelled')
                from (select state from rowlock.jobs union all select state from rowlock.history) as job
                """
            ).fetchall()
            assert (ended, events) in {("ready" if state == "ready" else "succeeded", 0), ("cancelled", 1)}
            assert ended == "cancelled" or not answer
            assert live(db) == set() or ended == "ready"
            assert cancelled(proxy, job) == (ended in {"ready", "cancelled"})
    trial.counts.pop("seed")
    trial.count(statements=len(everywhere), runs=len(everywhere) * len(MODES))


@pytest.fixture
def worker(url: str) -> Iterator[Engine]:
    engine = Engine(url)
    yield engine
    engine.close()


def a_job(db: Db, state: str, worker: Engine) -> tuple[UUID, list[ClaimedJob]]:
    """The only one there is: one that waits for its time, or one that runs."""
    db.execute(CLEAR)
    delay = "1 day" if state == "ready" else "0"
    [(job,)] = db.execute("select rowlock.enqueue('t', '{\"n\": 1}', delay => %s, key => 'k')", [delay]).fetchall()
    return job, worker.claim()


def cancelled(proxy: Proxy, job: UUID, *, deadline: timedelta = LONG) -> bool | None:
    """What one is told who cancels a job; None for an error."""
    with caller(proxy.url, deadline=deadline) as program:
        try:
            return program.app.jobs.get(job).cancel()
        except (psycopg.Error, RowlockError):
            return None


@deep
@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("how", ["plain", "in a loop"])
def test_a_signal_is_acknowledged_or_it_can_be_sent_again(
    how: str, key: str | None, proxy: Proxy, db: Db, trial: Trial
) -> None:
    everywhere = recorded(proxy, lambda: signalled(proxy, a_workflow(db), how, key))
    assert "signal_send" in {point.name for point in everywhere}

    for point, mode in itertools.product(everywhere, MODES):
        job = a_workflow(db)
        with struck(proxy, point, mode):
            answer = signalled(proxy, job, how, key, deadline=SHORT if mode.name == "black hole" else LONG)

        with noted(f"{mode} at {point}, and was told {answer}"):
            assert answer or mode.name not in PASSING or point.name == "select"
            [(stored, wakes)] = db.execute(
                "select (select count(*) from rowlock.signals), wakes from rowlock.jobs"
            ).fetchall()
            assert stored == wakes
            assert stored == 1 or (stored == 0 and not answer), "it was lost, or sent twice"
            assert not (answer and mode.kills)
            if key is not None:
                assert signalled(proxy, job, how, key) == (stored == 0)
    trial.counts.pop("seed")
    trial.count(statements=len(everywhere), runs=len(everywhere) * len(MODES))


def a_workflow(db: Db) -> UUID:
    """The only job there is."""
    db.execute(CLEAR)
    [(job,)] = db.execute("select rowlock.enqueue('w', version => 1)").fetchall()
    return UUID(str(job))


def signalled(proxy: Proxy, job: UUID, how: str, key: str | None, *, deadline: timedelta = LONG) -> bool | None:
    """What one is told who sends a signal; None for an error."""

    async def in_a_loop(app: Rowlock) -> bool:
        async with app:
            return await app.asignal(job, "paid", key=key)

    with caller(proxy.url, deadline=deadline) as program:
        try:
            return program.app.signal(job, "paid", key=key) if how == "plain" else asyncio.run(in_a_loop(program.app))
        except (psycopg.Error, RowlockError):
            return None


@deep
@pytest.mark.parametrize("key", [None, "k"])
def test_a_process_that_is_killed_has_enqueued_or_it_has_not(
    key: str | None, proxy: Proxy, db: Db, start: Start, trial: Trial
) -> None:
    words = ["jobs", "enqueue", "t", *(["--key", key] if key else [])]
    everywhere = recorded(proxy, lambda: start(words).wait())
    [(made,)] = db.execute("select count(*) from rowlock.jobs").fetchall()
    assert made == 1

    for point, mode in itertools.product(everywhere, (KILLED_BEFORE, KILLED_AFTER)):
        db.execute(CLEAR)
        proxy.forget()
        started: list[Member] = []
        happened = strike(proxy, point, mode, kill=partial(_kill_first, started))
        started.append(start(words))
        until(happened.is_set, what=f"{mode} at {point}")

        with noted(f"{mode} at {point}"):
            assert started[0].wait() < 0
            enqueues = point.name in {"job_put", "job_enqueue"}
            assert len(live(db)) == (1 if enqueues and mode.after else 0)
    trial.counts.pop("seed")
    trial.count(statements=len(everywhere), kills=2 * len(everywhere))


def _kill_first(started: Sequence[Member]) -> None:
    until(lambda: started, what="a process")[0].kill()


@pytest.fixture
def start(proxy: Proxy, nursery: Nursery, oracle: Oracle, tmp_path: Path) -> Start:
    """Starts `rowlock WORDS` in a process of its own, behind the proxy."""
    log = tmp_path / "caller.log"
    log.touch()
    return lambda words: Member(
        nursery.fork([*words, "--url", proxy.url], log=log, environment={}), log, nursery, oracle
    )


def begin_anew(scenario: Scenario, db: Db) -> None:
    """Nothing is there but what the scenario wants."""
    db.execute(CLEAR)
    for key in scenario.held:
        db.execute("select rowlock.enqueue('t', key => %s)", [key])


def told(scenario: Scenario, proxy: Proxy, *, deadline: timedelta = LONG) -> list[Job[None]] | None:
    """What the caller is told: its jobs, or an error that says what is wrong, which is None here."""
    with caller(proxy.url, deadline=deadline) as program:
        try:
            return scenario.do(program)
        except (psycopg.Error, RowlockError):
            return None


def live(db: Db) -> set[UUID]:
    """The jobs that are there; each key is held by the one whose key it is."""
    holders = db.execute("select key, job from rowlock.keys order by key").fetchall()
    assert holders == db.execute("select key, id from rowlock.jobs where key is not null order by key").fetchall()
    return {job for (job,) in db.execute("select id from rowlock.jobs")}
