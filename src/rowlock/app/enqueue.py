"""Enqueue: calls become rows, on the caller's connection or on one of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from uuid import UUID
from weakref import ref

from rowlock.app.job import Job
from rowlock.app.resources import Resources
from rowlock.app.tasks import Call
from rowlock.app.verbs import Exchange, Verb, ahold
from rowlock.db.borrowed import physical
from rowlock.db.enqueue_batch import EnqueueBatcher
from rowlock.errors import InvalidOption
from rowlock.model.ids import new_ids
from rowlock.model.row import NewJob
from rowlock.model.spec import Handler
from rowlock.store.enqueue import Existing, enqueue_all, takes_several_statements
from rowlock.store.query import Conversation

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Logged:
    """Who enqueues by hand, why, and after which job: for the event of it."""

    actor: str
    why: str | None
    like: UUID | None

    def enqueuing(self, job: NewJob, *, resend: bool = False) -> Conversation[dict[str, Existing]]:
        """Enqueue a job, and write down who did; nobody has if its key was another's."""
        existing = yield from enqueue_all([job], resend=resend)
        if job.id not in existing:
            from rowlock.store import operations  # noqa: PLC0415  whoever only enqueues does without

            like = None if self.like is None else str(self.like)
            yield operations.record_enqueued(
                job.id, task=job.task, queue=job.queue, actor=self.actor, why=self.why, like=like
            )
        return existing


class Enqueuer:
    """Enqueues on a call's own connection, else on the one that it is `within`, else on what `connection` returns."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._database = resources.database
        self._usual = resources.database.within.choose
        self._group = EnqueueBatcher(resources.database)

    def many(self, calls: Iterable[Call[R]], connection: object | None = None) -> Verb[list[Job[R]]]:
        """Enqueue calls, all or none."""
        calls = list(calls)
        return self._on(self._usual(_named(calls, connection)), calls)

    def _on(self, connection: object | None, calls: Sequence[Call[R]]) -> Verb[list[Job[R]]]:
        jobs = _new_jobs(calls)
        existing = yield from Exchange(
            self._database,
            partial(enqueue_all, jobs),
            resend=partial(enqueue_all, jobs, resend=True),
            connection=connection,
            atomic=takes_several_statements(jobs),
        )
        return self._handles(calls, jobs, existing, connection)

    async def aone(self, call: Call[R]) -> Job[R]:
        """Enqueue one call; concurrent calls without a connection or a key share a commit, as no sync ones can."""
        connection = self._usual(call.options.connection)
        if connection is not None or call.options.key is not None:
            return (await ahold(self._on(connection, [call])))[0]
        job = _new_jobs([call])[0]
        await self._group.enqueue(job)
        return self._handles([call], [job], {}, None)[0]

    def logged(self, call: Call[R], logged: Logged) -> Verb[Job[R]]:
        """Enqueue one call, together with the event of it."""
        [job] = _new_jobs([call])
        existing = yield from Exchange(
            self._database, partial(logged.enqueuing, job), resend=partial(logged.enqueuing, job, resend=True)
        )
        return self._handles([call], [job], existing, None)[0]

    def _handles(
        self,
        calls: Sequence[Call[R]],
        jobs: Sequence[NewJob],
        existing: Mapping[str, Existing],
        connection: object | None,
    ) -> list[Job[R]]:
        room, keep = self._resources.waiting_room, self._resources.keep
        borrowed = None if connection is None else _reference(connection)
        return [
            Job(
                job.id if (other := existing.get(job.id)) is None else other.id,
                task=job.task if other is None else other.task,
                queue=job.queue if other is None else other.queue,
                created=other is None,
                room=room,
                handler=call.task.handler if other is None else self._handler(call, other),
                keep=keep,
                borrowed=borrowed,
            )
            for call, job in zip(calls, jobs, strict=True)
        ]

    def _handler(self, call: Call[Any], other: Existing) -> Handler:
        """The code of the job that holds a call's key: one that was not to be made may be of another task."""
        return call.task.handler if other.task == call.task.name else self._resources.handler(other.task)


def _named(calls: Sequence[Call[R]], connection: object | None) -> object | None:
    """The one connection that the caller or the calls name."""
    connections = {id(call.options.connection): call.options.connection for call in calls}
    if connection is not None:
        connections[id(connection)] = connection
    connections.pop(id(None), None)
    if len(connections) > 1:
        raise InvalidOption("these calls name different connections; give one to enqueue_many(connection=…)")
    return next(iter(connections.values()), None)


def _new_jobs(calls: Sequence[Call[Any]]) -> list[NewJob]:
    return [call.to_job(job_id) for call, job_id in zip(calls, new_ids(len(calls)), strict=True)]


def _reference(connection: object) -> Callable[[], object | None]:
    """The driver's connection behind the caller's, for as long as somebody keeps it."""
    beneath = physical(connection)
    return _gone if beneath is None else ref(beneath)


def _gone() -> None:
    return None
