"""Signals as people send them: stored first, in the caller's transaction if there is one, and taken by one wait."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rowlock.db.database import Database
from rowlock.jobs import Job, refuse_in_loop
from rowlock.store.signals import sending


class Signalling:
    """The part of an app that speaks to workflows."""

    database: Database

    def signal(
        self,
        target: UUID | str | Job[Any],
        name: str,
        payload: object = None,
        *,
        key: str | None = None,
        connection: object | None = None,
    ) -> bool:
        """Send a signal to a workflow, by its Job, its id or its key; a `str` that is a UUID is an id.

        True: it is stored, and one wait for that name takes it, however early or late it comes. False: one with this
        `key` was sent before. SignalRefused: the workflow has ended, or is being cancelled. Like an enqueue it joins
        the transaction of `connection`, or of the one that it is `within`.
        """
        converse = sending(_meant(target), name, payload, key)
        lent = self.database.within.choose(connection)
        if lent is None:
            refuse_in_loop("app.signal", "await app.asignal(…)")
        return self.database.converse(converse, connection=lent, atomic=False)

    async def asignal(
        self,
        target: UUID | str | Job[Any],
        name: str,
        payload: object = None,
        *,
        key: str | None = None,
        connection: object | None = None,
    ) -> bool:
        """Send a signal to a workflow, by its Job, its id or its key; a `str` that is a UUID is an id.

        True: it is stored, and one wait for that name takes it, however early or late it comes. False: one with this
        `key` was sent before. SignalRefused: the workflow has ended, or is being cancelled. Like an enqueue it joins
        the transaction of `connection`, or of the one that it is `within`.
        """
        converse = sending(_meant(target), name, payload, key)
        lent = self.database.within.choose(connection)
        return await self.database.aconverse(converse, connection=lent, atomic=False)


def _meant(target: UUID | str | Job[Any]) -> UUID | str:
    return target.id if isinstance(target, Job) else target
