"""The lifespan: what a worker lives inside, from before its first claim until after its last settle."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rowlock import Rowlock
from rowlock.errors import TaskError
from tests.cli.programs import shop_in
from tests.depth import deep
from tests.waiting import auntil
from tests.worker.working import Db, ended, one, work_off, work_until

ON_BOOKS = "select count(*) from rowlock.workers"


@pytest.fixture
def notes() -> list[object]:
    """What happened, in order."""
    return []


@pytest.fixture
def made(url: str) -> Iterator[Callable[..., Rowlock]]:
    """Makes an app with this lifespan, and a task `t`."""
    apps: list[Rowlock] = []

    def make(lifespan: Callable[[Rowlock], Any], body: Callable[[], Any] = lambda: None) -> Rowlock:
        app = Rowlock(url, lifespan=lifespan)
        apps.append(app)

        @app.task(name="t")
        async def t() -> Any:  # noqa: ANN401  whatever the body answers
            return body()

        return app

    yield make
    for app in apps:
        app.close()


def test_a_worker_lives_inside_an_async_lifespan(made: Callable[..., Rowlock], db: Db, notes: list[object]) -> None:
    @asynccontextmanager
    async def lifespan(app: Rowlock) -> AsyncIterator[None]:
        notes.append(("in", one(db, ON_BOOKS), "t" in app.tasks.names()))
        yield
        notes.append(("out", one(db, ON_BOOKS), ended(db)))

    app = made(lifespan, lambda: notes.append("runs"))

    app.enqueue("t")
    work_off(app, db)

    assert notes == [("in", 0, True), "runs", ("out", 0, [("t", "succeeded", None, 0)])]


def test_a_plain_lifespan_will_do(made: Callable[..., Rowlock], db: Db, notes: list[object]) -> None:
    @contextmanager
    def lifespan(_app: Rowlock) -> Iterator[None]:
        notes.append("in")
        yield
        notes.append("out")

    app = made(lifespan, lambda: notes.append("runs"))

    app.enqueue("t")
    work_off(app, db)

    assert notes == ["in", "runs", "out"]


def test_handlers_see_the_context_variables_of_the_lifespan(made: Callable[..., Rowlock], db: Db) -> None:
    model: ContextVar[str] = ContextVar("model")

    @asynccontextmanager
    async def lifespan(_app: Rowlock) -> AsyncIterator[None]:
        token = model.set("loaded")
        yield
        model.reset(token)

    app = made(lifespan, model.get)

    app.enqueue("t")
    work_off(app, db)

    assert one(db, "select result from rowlock.history") == "loaded"


def test_it_is_entered_once_however_many_incarnations_the_worker_has(
    made: Callable[..., Rowlock], db: Db, notes: list[object]
) -> None:
    @asynccontextmanager
    async def lifespan(_app: Rowlock) -> AsyncIterator[None]:
        notes.append("in")
        yield
        notes.append("out")

    app = made(lifespan)
    ids: set[object] = set()

    def has_had_two() -> bool:
        ids.update(db.execute("delete from rowlock.workers returning id").fetchall())
        return len(ids) >= 2

    work_until(app, has_had_two, lease=timedelta(seconds=1))

    assert notes == ["in", "out"]


def test_an_error_on_entering_ends_the_worker_with_that_error(made: Callable[..., Rowlock], db: Db) -> None:
    @asynccontextmanager
    async def lifespan(_app: Rowlock) -> AsyncIterator[None]:
        if db.closed:
            yield
        raise ConnectionError("no model to load")

    app = made(lifespan)
    app.enqueue("t")

    async def work() -> None:
        async with app, app.worker():
            pytest.fail("a worker that could not start")

    with pytest.raises(ConnectionError, match="no model to load"):
        asyncio.run(work())
    assert one(db, "select state from rowlock.jobs") == "ready"
    assert one(db, ON_BOOKS) == 0


def test_an_error_of_the_program_beside_the_worker_leaves_it_too(
    made: Callable[..., Rowlock], db: Db, notes: list[object]
) -> None:
    @asynccontextmanager
    async def lifespan(_app: Rowlock) -> AsyncIterator[None]:
        try:
            yield
        finally:
            notes.append(("out", one(db, ON_BOOKS)))

    app = made(lifespan)

    async def work() -> None:
        async with app, app.worker():
            raise ValueError("beside the worker")

    with pytest.raises(ValueError, match="beside the worker"):
        asyncio.run(work())
    assert notes == [("out", 0)]


def test_a_worker_that_is_cancelled_hands_back_and_then_leaves_it(
    made: Callable[..., Rowlock], db: Db, notes: list[object]
) -> None:
    @asynccontextmanager
    async def lifespan(_app: Rowlock) -> AsyncIterator[None]:
        try:
            yield
        finally:
            notes.append(("out", one(db, ON_BOOKS), one(db, "select state from rowlock.jobs")))

    app = made(lifespan)

    @app.task(name="holds")
    async def holds() -> None:
        await asyncio.Event().wait()

    app.enqueue("holds")

    async def work() -> None:
        async with app:
            life = asyncio.create_task(app.worker().run())
            await auntil(lambda: one(db, "select state from rowlock.jobs") == "running")
            life.cancel()
            await asyncio.wait([life])
            assert life.cancelled()

    asyncio.run(work())

    assert notes == [("out", 0, "ready")]
    assert one(db, "select failures from rowlock.jobs") == 0


def test_a_lifespan_that_is_no_context_manager_is_refused() -> None:
    async def lifespan(_app: Rowlock) -> AsyncIterator[None]:
        yield

    with pytest.raises(TaskError, match=r"lifespan= wants .*; put @asynccontextmanager on .*lifespan"):
        Rowlock(lifespan=lifespan)  # type: ignore[arg-type]


# In processes of their own

PROGRAM = """
import logging
from contextlib import asynccontextmanager

from rowlock import Rowlock

log = logging.getLogger("shop")


@asynccontextmanager
async def lifespan(app):
    log.info("lifespan in")
    yield
    log.info("lifespan out")


@asynccontextmanager
async def broken(app):
    raise ConnectionError("no model to load")
    yield


app = Rowlock(lifespan=lifespan)
broken_app = Rowlock(lifespan=broken)
"""


@deep
def test_each_worker_process_has_its_own(tmp_path: Path, url: str) -> None:
    with shop_in(tmp_path) as shop:
        shop.write("living.py", PROGRAM)

        worker = shop.start("worker", "--app", "living", "--url", url, "--processes", "2")
        worker.says("works on", times=2)
        worker.signal(signal.SIGTERM)

        assert worker.ended() == 0, worker.errors
        assert worker.errors.count("lifespan in") == 2
        assert worker.errors.count("lifespan out") == 2


def test_a_worker_process_that_cannot_enter_it_says_why_and_ends_with_exit_code_1(tmp_path: Path, url: str) -> None:
    with shop_in(tmp_path) as shop:
        shop.write("living.py", PROGRAM)

        worker = shop.run("worker", "--app", "living:broken_app", "--url", url)

        assert worker.process.returncode == 1
        assert worker.err[-1] == "ConnectionError: no model to load"
