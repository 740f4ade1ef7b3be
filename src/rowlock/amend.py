"""What operators do with one job: give it other arguments before it starts, and enqueue one in their own name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from rowlock.actor import check_actor, check_why
from rowlock.db.database import Database
from rowlock.enqueue import Enqueuer, Logged
from rowlock.errors import InvalidArguments, RowlockError
from rowlock.jobs import Job, refuse_in_loop, show
from rowlock.model.filter import check_id
from rowlock.model.names import shown
from rowlock.model.record import JobRecord
from rowlock.model.spec import Keep
from rowlock.store import operations
from rowlock.store.query import Conversation
from rowlock.store.schema import make_partitions
from rowlock.tasks import Call

R = TypeVar("R")

Encode = Callable[[str, int | None, Mapping[str, object]], str]
"""The JSON of arguments for a task, and the version of a workflow, checked where this process knows it."""


class Amending:
    """The part of `app.jobs` that is about one job."""

    def __init__(self, database: Database, keep: Keep, *, encode: Encode, enqueuer: Enqueuer) -> None:
        self._database = database
        self._keep = keep
        self._encode = encode
        self._enqueuer = enqueuer

    def edit(
        self, job_id: UUID | str, *, args: Mapping[str, object], by: str | None = None, why: str | None = None
    ) -> tuple[str, ...]:
        """Give a job that has not started, or waits for its next attempt, other arguments; answers the names of those.

        They must fit the task, if this process knows it. A job that runs or has ended is left alone, and so are
        workflows that have begun and children: then it raises RowlockError, and JobNotFound if there is no such job.
        """
        refuse_in_loop("app.jobs.edit", "await app.jobs.aedit(…)")
        editing = self._editing(job_id, args, by, why)
        self._database.converse(lambda _resend: make_partitions(longest=self._keep.longest))
        return self._database.converse(editing)

    async def aedit(
        self, job_id: UUID | str, *, args: Mapping[str, object], by: str | None = None, why: str | None = None
    ) -> tuple[str, ...]:
        """Give a job that has not started, or waits for its next attempt, other arguments; answers the names of those.

        They must fit the task, if this process knows it. A job that runs or has ended is left alone, and so are
        workflows that have begun and children: then it raises RowlockError, and JobNotFound if there is no such job.
        """
        editing = self._editing(job_id, args, by, why)
        await self._database.aconverse(lambda _resend: make_partitions(longest=self._keep.longest))
        return await self._database.aconverse(editing)

    def enqueue(
        self, call: Call[R], *, like: UUID | str | None = None, by: str | None = None, why: str | None = None
    ) -> Job[R]:
        """Enqueue a call by hand: an event says who did it and why, and after which job it was made, if `like` one."""
        logged = self._logged(like, by, why)
        refuse_in_loop("app.jobs.enqueue", "await app.jobs.aenqueue(…)")
        self._database.converse(lambda _resend: make_partitions(longest=self._keep.longest))
        return self._enqueuer.logged(call, logged)

    async def aenqueue(
        self, call: Call[R], *, like: UUID | str | None = None, by: str | None = None, why: str | None = None
    ) -> Job[R]:
        """Enqueue a call by hand: an event says who did it and why, and after which job it was made, if `like` one."""
        logged = self._logged(like, by, why)
        await self._database.aconverse(lambda _resend: make_partitions(longest=self._keep.longest))
        return await self._enqueuer.alogged(call, logged)

    def _logged(self, like: UUID | str | None, by: str | None, why: str | None) -> Logged:
        return Logged(check_actor(by), check_why(why), None if like is None else check_id(like))

    def _editing(
        self, job_id: UUID | str, args: Mapping[str, object], by: str | None, why: str | None
    ) -> Callable[[bool], Conversation[tuple[str, ...]]]:
        known, actor, reason = check_id(job_id), check_actor(by), check_why(why)
        if not isinstance(args, Mapping):
            raise InvalidArguments(f"args={shown(args)} must be a mapping of arguments by name; write args={{'x': 1}}")

        def begin(_resend: bool) -> Conversation[tuple[str, ...]]:  # noqa: FBT001  as converse calls it
            while True:  # what changes between the two statements is seen at the next look
                record = yield from show(known)
                if (fault := _fault(record)) is not None:
                    raise RowlockError(f"job {known} {fault}")
                text = self._encode(record.task, record.version, args)
                edited: list[Any] = yield operations.edit(str(known), args=text, actor=actor, why=reason)
                if edited:
                    return tuple(edited[0])

        return begin


def _fault(record: JobRecord) -> str | None:
    """Why a job's arguments cannot be changed, and what to do instead."""
    if record.ended:
        return f"has {record.state}, and what it was given stays as it was; enqueue another one like it"
    if record.begun:
        return "is a workflow that has begun, or the child of one, and what it was given is remembered; cancel it first"
    if record.state == "running":
        return "is running with the arguments it has; cancel it and enqueue another one, or wait for its next attempt"
    return None
