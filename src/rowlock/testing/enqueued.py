"""Enqueued: assertions about jobs that have not ended yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic_core import from_json, to_json

from rowlock.app.app import Rowlock
from rowlock.app.tasks import Call, Task
from rowlock.app.verbs import refuse_in_loop
from rowlock.errors import TaskError
from rowlock.model.key import Key
from rowlock.model.names import versioned
from rowlock.model.record import JobRecord
from rowlock.model.spec import AS_DECLARED
from rowlock.store import jobs
from rowlock.store.query import Conversation

_MOST_SHOWN = 20


def assert_enqueued(
    wanted: Task[..., Any] | Call[Any],
    *,
    count: int | None = 1,
    queue: str | None = None,
    key: str | Key | None = None,
    tags: Sequence[str] = (),
    priority: int | None = None,
    run_at: datetime | None = None,
    delay: timedelta | None = None,
    connection: object | None = None,
) -> list[JobRecord]:
    """Assert that so many live jobs are of this task, or call; with count=None, that there is any. Returns them.

    A task means jobs of any arguments, a call those of exactly its arguments and options: `task.bind(42)`. `tags` are
    among the job's own. With `connection` it is looked inside that connection's transaction.
    """
    sought = _Sought.of(wanted, queue=queue, key=key, tags=tags, priority=priority, run_at=run_at, delay=delay)
    return sought.counted(_live(sought.app, connection), count)


async def aassert_enqueued(
    wanted: Task[..., Any] | Call[Any],
    *,
    count: int | None = 1,
    queue: str | None = None,
    key: str | Key | None = None,
    tags: Sequence[str] = (),
    priority: int | None = None,
    run_at: datetime | None = None,
    delay: timedelta | None = None,
    connection: object | None = None,
) -> list[JobRecord]:
    """As `assert_enqueued`, for async tests."""
    sought = _Sought.of(wanted, queue=queue, key=key, tags=tags, priority=priority, run_at=run_at, delay=delay)
    return sought.counted(await _alive(sought.app, connection), count)


def assert_not_enqueued(
    wanted: Task[..., Any] | Call[Any],
    *,
    queue: str | None = None,
    key: str | Key | None = None,
    tags: Sequence[str] = (),
    priority: int | None = None,
    run_at: datetime | None = None,
    delay: timedelta | None = None,
    connection: object | None = None,
) -> None:
    """Assert that no live job is of this task, or call."""
    sought = _Sought.of(wanted, queue=queue, key=key, tags=tags, priority=priority, run_at=run_at, delay=delay)
    sought.counted(_live(sought.app, connection), 0)


async def aassert_not_enqueued(
    wanted: Task[..., Any] | Call[Any],
    *,
    queue: str | None = None,
    key: str | Key | None = None,
    tags: Sequence[str] = (),
    priority: int | None = None,
    run_at: datetime | None = None,
    delay: timedelta | None = None,
    connection: object | None = None,
) -> None:
    """As `assert_not_enqueued`, for async tests."""
    sought = _Sought.of(wanted, queue=queue, key=key, tags=tags, priority=priority, run_at=run_at, delay=delay)
    sought.counted(await _alive(sought.app, connection), 0)


def _live(app: Rowlock, connection: object | None) -> list[JobRecord]:
    if connection is None:
        refuse_in_loop("assert_enqueued", "await aassert_enqueued(…)")
    return app.database.converse(_live_jobs, connection=connection or app.database.within.block(), atomic=False)


async def _alive(app: Rowlock, connection: object | None) -> list[JobRecord]:
    found = connection or await app.database.within.ablock()
    return await app.database.aconverse(_live_jobs, connection=found, atomic=False)


def _live_jobs() -> Conversation[list[JobRecord]]:
    return (yield jobs.live())


@dataclass(frozen=True, slots=True)
class _Sought:
    """What an assertion is about; None is whatever there is."""

    task: Task[..., Any]
    args: str | None
    queue: str | None
    key: str | None
    tags: frozenset[str]
    priority: int | None
    attempts: int | None
    run_at: datetime | None
    delay: timedelta | None

    @classmethod
    def of(
        cls,
        wanted: Task[..., Any] | Call[Any],
        *,
        queue: str | None,
        key: str | Key | None,
        tags: Sequence[str],
        priority: int | None,
        run_at: datetime | None,
        delay: timedelta | None,
    ) -> _Sought:
        """A call says what it was bound to and used with; what the assertion says itself comes first."""
        if not isinstance(wanted, Task | Call):
            raise TypeError(f"{wanted!r} is neither a task nor a call; write assert_enqueued(task) or (task.bind(…))")
        task, args, options = (
            (wanted.task, _canonical(from_json(wanted.args)), wanted.options)
            if isinstance(wanted, Call)
            else (wanted, None, AS_DECLARED)
        )
        return cls(
            task=task,
            args=args,
            queue=options.queue if queue is None else queue,
            key=_text(options.key if key is None else key),
            tags=frozenset((*options.tags, *tags)),
            priority=options.priority if priority is None else priority,
            attempts=options.attempts,
            run_at=options.run_at if run_at is None else run_at,
            delay=options.delay if delay is None else delay,
        )

    @property
    def app(self) -> Rowlock:
        """The app whose database to look into."""
        if self.task.app is None:
            raise TaskError(f"task {self.task.name!r} belongs to no app; call app.include(…) with its Tasks()")
        return self.task.app

    def counted(self, live: Sequence[JobRecord], count: int | None) -> list[JobRecord]:
        """Those among live jobs that are meant; AssertionError if there are more or fewer."""
        found = [record for record in live if self._fits(record)]
        if len(found) == count or (count is None and found):
            return found
        if not live:
            raise AssertionError(f"{self._description(count)}; there is no live job at all")
        raise AssertionError(
            "\n".join([f"{self._description(count)}, found {len(found)} (*) among these:", *_shown(live, found)])
        )

    def _fits(self, record: JobRecord) -> bool:
        return (
            record.task in (self.task.name, *self.task.spec.aliases)
            and record.version == self.task.spec.version
            and self.tags <= {*record.tags}
            and self.args in (None, _canonical(record.args))
            and self.queue in (None, record.queue)
            and self.key in (None, record.key)
            and self.priority in (None, record.priority)
            and self.attempts in (None, record.attempts)
            and self.run_at in (None, record.run_at)
            # Both are written by one statement, from one reading of the clock.
            and self.delay in (None, record.run_at - record.created_at)
        )

    def _description(self, count: int | None) -> str:
        asked = {
            "arguments": self.args,
            "queue": self.queue,
            "key": self.key,
            "tags": ", ".join(sorted(self.tags)) or None,
            "priority": self.priority,
            "attempts": self.attempts,
            "run_at": self.run_at and self.run_at.isoformat(),
            "delay": self.delay,
        }
        said = ", ".join(f"{name} {value}" for name, value in asked.items() if value is not None)
        number = "any live job" if count is None else _plural(count)
        name = versioned(self.task.name, self.task.spec.version)
        return f"expected {number} of {name}" + (f" with {said}" if said else "")


def _text(key: str | Key | None) -> str | None:
    """What a job's row says of a key."""
    return key.text if isinstance(key, Key) else key


def _canonical(args: object) -> str:
    """Arguments in one form; as text, because to Python 1, 1.0 and True are equal."""
    return to_json(_sorted(args)).decode()


def _sorted(value: object) -> object:
    match value:
        case dict():
            return {name: _sorted(value[name]) for name in sorted(value)}
        case list():
            return [_sorted(one) for one in value]
        case _:
            return value


def _plural(count: int) -> str:
    return "1 live job" if count == 1 else f"{count} live jobs"


def _shown(live: Sequence[JobRecord], found: Sequence[JobRecord]) -> list[str]:
    """The jobs as lines, those that fit first."""
    fitting = {record.id for record in found}
    ordered = sorted(live, key=lambda record: record.id not in fitting)
    lines = [f"  {'*' if record.id in fitting else ' '} {_line(record)}" for record in ordered[:_MOST_SHOWN]]
    return lines + ([f"    … and {len(live) - _MOST_SHOWN} more"] if len(live) > _MOST_SHOWN else [])


def _line(record: JobRecord) -> str:
    facts = {
        "priority": record.priority or None,
        "key": record.key,
        "tags": ", ".join(record.tags) or None,
        "delay": (record.run_at - record.created_at) or None,
        "waits for": record.waits_for,
    }
    said = "".join(f", {name} {value}" for name, value in facts.items() if value is not None)
    return f"{versioned(record.task, record.version)} {_canonical(record.args)} {record.state} on {record.queue}{said}"
