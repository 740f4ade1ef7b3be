"""Enqueue: calls become rows, on the caller's connection or on one of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from rowlock.db.database import Database
from rowlock.db.group import GroupCommit
from rowlock.errors import InvalidOption, RowlockError
from rowlock.jobs import Job
from rowlock.model.ids import new_ids
from rowlock.model.row import NewJob
from rowlock.model.spec import AS_DECLARED
from rowlock.store import jobs as job_store
from rowlock.store.jobs import Existing
from rowlock.tasks import Call

R = TypeVar("R")


class Enqueuer:
    """The way in."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._group = GroupCommit(database)

    async def aone(self, call: Call[R]) -> Job[R]:
        """Enqueue one call; concurrent calls without a connection or a key share a commit."""
        if call.options.connection is not None or call.options.key is not None:
            return (await self.amany([call], None))[0]
        job = _new_jobs([call])[0]
        await self._group.enqueue(job)
        return Job(job.id, task=job.task, queue=job.queue)

    def many(self, calls: Iterable[Call[R]], connection: object | None) -> list[Job[R]]:
        """Enqueue calls, all or none."""
        jobs, connection = _prepared(calls, connection)
        if connection is None:
            _refuse_in_loop()
        existing = self._database.converse(
            lambda resend: job_store.enqueue_all(jobs, resend=resend),
            connection=connection,
            atomic=job_store.takes_several_statements(jobs),
        )
        return _handles(jobs, existing)

    async def amany(self, calls: Iterable[Call[R]], connection: object | None) -> list[Job[R]]:
        """Enqueue calls, all or none."""
        jobs, connection = _prepared(calls, connection)
        existing = await self._database.aconverse(
            lambda resend: job_store.enqueue_all(jobs, resend=resend),
            connection=connection,
            atomic=job_store.takes_several_statements(jobs),
        )
        return _handles(jobs, existing)


def _prepared(calls: Iterable[Call[R]], connection: object | None) -> tuple[list[NewJob], object | None]:
    """The rows to insert, and the one connection that the caller or the calls name."""
    calls = list(calls)
    connections = {id(call.options.connection): call.options.connection for call in calls}
    if connection is not None:
        connections[id(connection)] = connection
    connections.pop(id(None), None)
    if len(connections) > 1:
        raise InvalidOption("these calls name different connections; give one to enqueue_many(connection=…)")
    return _new_jobs(calls), next(iter(connections.values()), None)


def _new_jobs(calls: Sequence[Call[Any]]) -> list[NewJob]:
    return [_new_job(call, job_id) for call, job_id in zip(calls, new_ids(len(calls)), strict=True)]


def _new_job(call: Call[Any], job_id: str) -> NewJob:
    spec, options = call.task.spec, call.options
    if options is AS_DECLARED:  # the way of bulk: by position, a third of the time
        return NewJob(job_id, spec.queue, spec.name, call.args, spec.priority, spec.retry.attempts)
    return NewJob(
        id=job_id,
        queue=options.queue or spec.queue,
        task=spec.name,
        args=call.args,
        priority=spec.priority if options.priority is None else options.priority,
        attempts=options.attempts or spec.retry.attempts,
        run_at=options.run_at,
        delay=options.delay,
        lifetime=options.expires,
        tags=options.tags or None,
        key=options.key,
    )


def _handles(jobs: Sequence[NewJob], existing: Mapping[str, Existing]) -> list[Job[Any]]:
    return [
        Job(existing[job.id].id, task=job.task, queue=existing[job.id].queue, created=False)
        if job.id in existing
        else Job(job.id, task=job.task, queue=job.queue)
        for job in jobs
    ]


def _refuse_in_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RowlockError("enqueue would block the running event loop; use `await task.aenqueue(…)`")
