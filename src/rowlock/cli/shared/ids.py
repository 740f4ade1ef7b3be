"""Ids of jobs as they are typed: whole, or the beginning or end of one."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final
from uuid import UUID

import click

from rowlock.app.app import Rowlock
from rowlock.errors import JobNotFound, RowlockError
from rowlock.store import jobs

# What a narrow table shows of an id: its end, as ids of jobs that were enqueued together begin alike.
SHOWN: Final = 8
_LEAST = 4
_MOST = 6  # that the error for an ambiguous one lists
_PART = re.compile(rf"[0-9a-f]{{{_LEAST},32}}")


class JobId(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A whole id becomes a UUID at once; a part of one stays a text, for `whole_id` to look up."""

    name = "id"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> UUID | str:
        """Refuse what can be neither."""
        part = _digits(str(value))
        with suppress(ValueError):
            return UUID(part)
        if not _PART.fullmatch(part):
            self.fail(
                f"{value!r} is not the id of a job, nor {_LEAST} or more digits from its beginning or end", param, ctx
            )
        return part


JOB_ID: Final = JobId()


def is_part(typed: str) -> bool:
    """Whether it may be a part of an id, where it may be something else as well: as long as what tables show."""
    return len(typed.strip("…")) >= SHOWN and _PART.fullmatch(_digits(typed)) is not None


def _digits(typed: str) -> str:
    return typed.strip("…").lower().replace("-", "")


def whole_id(app: Rowlock, typed: UUID | str) -> UUID:
    """The id that was meant; JobNotFound if no job has it, and an error with the candidates if several do."""
    if isinstance(typed, UUID):
        return typed
    query = jobs.find(typed, most=_MOST + 1)
    found = app.database.run(query)
    if not found:
        raise JobNotFound(
            None,
            f"no job's id begins with {typed}, and among the newest {jobs.NEWEST:,} of live and of ended jobs none "
            "ends with it; type more of it, or the whole",
        )
    if len(found) > 1:
        more = " and more" if len(found) > _MOST else ""
        listed = ", ".join(found[:_MOST])
        raise RowlockError(f"several jobs' ids begin or end with {typed}: {listed}{more}; type more of it")
    return UUID(found[0])
