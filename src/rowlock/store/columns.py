"""Columns: lists that several statements share, so that a column is added in one place.

A statement writes the name of a list in braces, as in `{copied}`; the loader of statements puts the list there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from rowlock.model.record import DATA, FACTS
from rowlock.model.row import ClaimedJob

COPIED: Final = (
    "id",
    "queue",
    "task",
    "priority",
    "claims",
    "attempts",
    "run_at",
    "created_at",
    "started_at",
    "worker",
    "args",
    "key",
    "tags",
    "progress",
    "version",
    "parent",
)
"""What a job takes along into history as it stands. SQL functions cannot use the list: a house test compares theirs."""

# Of `update rowlock.jobs … returning`; the statement has a CTE `paused`.
_CLAIMED: Final = {
    "args": "args::text",
    "expired": "expires_at <= rowlock.now()",
    "paused": "task = any(array(select name from paused where kind = 'task'))",
    "wakes": "nullif(wakes, 0)",
    "cancelling": "cancel_at is not null",
    "waited": "greatest(date_part('epoch', rowlock.now() - run_at), 0)",
}

# Of a row that the statement calls `job`.
_LIVE: Final = {
    "state": "rowlock.shown_state(job.state, job.waits_for, job.wakes_at, job.run_at)",
    "ended_at": "null::timestamptz",
    "progress": "job.progress::text",
}
_ENDED: Final = {
    "expires_at": "null::timestamptz",
    "cancel_at": "null::timestamptz",
    "waits_for": "null::text",
    "progress": "job.progress::text",
}


def _selected(names: Iterable[str], calculated: Mapping[str, str], *, of: str = "") -> str:
    """The columns of these names: what is not calculated is a column of the table."""
    return ", ".join([f"{calculated[name]} as {name}" if name in calculated else of + name for name in names])


LISTS: Final = {
    "copied": ", ".join(COPIED),
    "claimed": _selected(ClaimedJob._fields, _CLAIMED),
    "live_facts": _selected(FACTS, _LIVE, of="job."),
    "ended_facts": _selected(FACTS, _ENDED, of="job."),
    "no_data": ", ".join(f"null::text as {name}" for name in DATA),
}
"""The lists by the names that statements write in braces."""
