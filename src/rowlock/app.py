"""Rowlock, the app: what users hold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from rowlock.db.address import find_address
from rowlock.db.database import Database
from rowlock.enqueue import Enqueuer
from rowlock.errors import InvalidOption, TaskError, UnknownTask
from rowlock.jobs import Job
from rowlock.model.payload import encode_untyped
from rowlock.model.spec import AS_DECLARED, DEFAULT_QUEUE, Keep, TaskSpec
from rowlock.store.query import DEFAULT_SCHEMA
from rowlock.tasks import Call, Task, Tasks
from rowlock.worker.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")


class Rowlock:
    """An app: its tasks and its database.

    The database is `url`, else $ROWLOCK_URL, else $DATABASE_URL; `embedded` is the folder of a private server instead.
    `imports` are the modules that a worker loads to know the tasks. Making an app does no I/O.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        embedded: str | Path | None = None,
        schema: str = DEFAULT_SCHEMA,
        imports: Sequence[str] = (),
        keep: Keep | None = None,
    ) -> None:
        if url is not None and embedded is not None:
            raise InvalidOption("give url= or embedded=, not both")
        self.imports = tuple(imports)
        self.keep = keep or Keep()
        self.tasks = Tasks(self)
        self.task = self.tasks.task  # @app.task, or @app.task(queue="mail", retry=Retry(attempts=5))
        self.database = Database(lambda: find_address(url, embedded), schema)
        self._enqueuer = Enqueuer(self.database)

    # Declaring tasks

    def include(self, tasks: Tasks) -> None:
        """Take in tasks that were collected without an app."""
        for task in tasks:
            if task.app not in (None, self):
                raise TaskError(f"task {task.name!r} is already in another app")
            self.tasks.add(task)

    # Enqueuing

    def enqueue(self, name: str, /, *args: object, **kwargs: object) -> Job[Any]:
        """Enqueue by name, for code that cannot import the task; arguments by name unless this process knows it."""
        return self.enqueue_call(self.call(name, args, kwargs))

    async def aenqueue(self, name: str, /, *args: object, **kwargs: object) -> Job[Any]:
        """Enqueue by name, for code that cannot import the task; arguments by name unless this process knows it."""
        return await self.aenqueue_call(self.call(name, args, kwargs))

    def call(self, name: str, args: Sequence[object] = (), kwargs: Mapping[str, object] | None = None) -> Call[Any]:
        """A call by the task's name."""
        task = self.tasks.get(name)
        if task is not None:
            return task.bind(*args, **(kwargs or {}))
        if args:
            raise UnknownTask(
                f"task {name!r} is not known here, so its arguments need names: app.enqueue({name!r}, x=…)"
            )
        return Call(self._stranger(name), encode_untyped(kwargs or {}), AS_DECLARED)

    def _stranger(self, name: str) -> Task[..., Any]:
        """A task of which only the name is known."""

        def unknown(**_kwargs: object) -> None:
            raise UnknownTask(f"task {name!r} is not known in this process")

        task: Task[..., Any] = Task(unknown, TaskSpec(name=name))
        task.app = self
        return task

    def enqueue_call(self, call: Call[R]) -> Job[R]:
        """Enqueue one call."""
        return self._enqueuer.many([call], None)[0]

    async def aenqueue_call(self, call: Call[R]) -> Job[R]:
        """Enqueue one call; concurrent calls without a connection or a key share a commit."""
        return await self._enqueuer.aone(call)

    def enqueue_many(self, calls: Iterable[Call[R]], *, connection: object | None = None) -> list[Job[R]]:
        """Enqueue many calls, all or none; 100,000 at once are fine."""
        return self._enqueuer.many(calls, connection)

    async def aenqueue_many(self, calls: Iterable[Call[R]], *, connection: object | None = None) -> list[Job[R]]:
        """Enqueue many calls, all or none; 100,000 at once are fine."""
        return await self._enqueuer.amany(calls, connection)

    # Living

    def migrate(self) -> list[str]:
        """Bring the database's schema up to date; answers the names of the migrations applied."""
        return [f"{migration.version:04d}_{migration.name}" for migration in self.database.migrate()]

    async def amigrate(self) -> list[str]:
        """Bring the database's schema up to date; answers the names of the migrations applied."""
        return await asyncio.to_thread(self.migrate)

    def worker(
        self,
        *,
        queues: str | Sequence[str] | Mapping[str, float] = DEFAULT_QUEUE,
        slots: int = 100,
        threads: int | None = None,
        lease: timedelta = timedelta(seconds=30),
        grace: timedelta = timedelta(seconds=30),
    ) -> Worker:
        """A worker of this app's jobs: `async with app.worker(queues=["mail", "default"], slots=100):`.

        Queues in a sequence are strict, each looked into only when those before it are empty; in a mapping they have
        weights. Sync handlers run in `threads` (at most 32 unless asked). `grace` is what running jobs get at the end.
        """
        for module in self.imports:
            import_module(module)
        for task in self.tasks:
            task.prepare()
        return Worker(
            handlers=self.tasks.handlers(),
            database=self.database,
            keep=self.keep,
            queues=queues,
            slots=slots,
            threads=threads,
            lease=lease,
            grace=grace,
        )

    def close(self) -> None:
        """Close the connections of sync callers."""
        self.database.close()

    async def aclose(self) -> None:
        """Close this app's idle connections."""
        await self.database.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
