"""Signals as people send them: stored first, in the caller's transaction if there is one, and taken by one wait."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rowlock.app.checks import check_actor, check_why
from rowlock.app.job import Job, refuse_in_loop
from rowlock.db.database import Database
from rowlock.errors import InvalidOption
from rowlock.model.spec import Keep
from rowlock.store.schema import make_partitions
from rowlock.store.workflows.signals import sending


class Signalling:
    """The part of an app that speaks to workflows."""

    database: Database
    keep: Keep

    def signal(
        self,
        target: UUID | str | Job[Any],
        name: str,
        payload: object = None,
        *,
        key: str | None = None,
        connection: object | None = None,
        by: str | None = None,
        why: str | None = None,
    ) -> bool:
        """Send a signal to a workflow, by its Job, its id or its key; a `str` that is a UUID is an id.

        True: it is stored, and one wait for that name takes it, however early or late it comes. False: one with this
        `key` was sent before. SignalRefused: the workflow has ended, or is being cancelled. Like an enqueue it joins
        the transaction of `connection`, or of the one that it is `within`. `by` is for somebody who sends it by hand:
        then an event is written, with `why`.
        """
        actor, reason = _who(by, why)
        converse = sending(_meant(target), name, payload, key, actor=actor, why=reason)
        lent = self.database.within.choose(connection)
        if lent is None:
            refuse_in_loop("app.signal", "await app.asignal(…)")
        if by is not None:
            self.database.converse(lambda: make_partitions(longest=self.keep.longest))
        return self.database.converse(converse, connection=lent, atomic=False)

    async def asignal(
        self,
        target: UUID | str | Job[Any],
        name: str,
        payload: object = None,
        *,
        key: str | None = None,
        connection: object | None = None,
        by: str | None = None,
        why: str | None = None,
    ) -> bool:
        """Send a signal to a workflow, by its Job, its id or its key; a `str` that is a UUID is an id.

        True: it is stored, and one wait for that name takes it, however early or late it comes. False: one with this
        `key` was sent before. SignalRefused: the workflow has ended, or is being cancelled. Like an enqueue it joins
        the transaction of `connection`, or of the one that it is `within`. `by` is for somebody who sends it by hand:
        then an event is written, with `why`.
        """
        actor, reason = _who(by, why)
        converse = sending(_meant(target), name, payload, key, actor=actor, why=reason)
        lent = self.database.within.choose(connection)
        if by is not None:
            await self.database.aconverse(lambda: make_partitions(longest=self.keep.longest))
        return await self.database.aconverse(converse, connection=lent, atomic=False)


def _meant(target: UUID | str | Job[Any]) -> UUID | str:
    return target.id if isinstance(target, Job) else target


def _who(by: str | None, why: str | None) -> tuple[str | None, str | None]:
    """Who sends it by hand, and why; without the one, the other would be lost."""
    if by is None and why is not None:
        raise InvalidOption("why= is for an event, and that is written with by=; say who sends it")
    return None if by is None else check_actor(by), check_why(why)
