"""Failure groups: failed jobs by task and error, without what differs from job to job."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from rowlock.model.record import JobRecord
from rowlock.model.redact import redact_text

_LONGEST: Final = 200
# Each pattern is matched from its beginning only, in a text of bounded length: the failing code chooses the text.
_DIFFERS: Final = re.compile(
    r"(?P<uuid>\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b)"
    r"|(?P<double>\"[^\"]*\")|(?P<single>(?<!\w)'[^']*'(?!\w))|(?P<tick>`[^`]*`)"
    r"|(?P<hex>\b0[xX][0-9a-fA-F]+\b|\b(?=[a-f]*[0-9])[0-9a-f]{12,}\b)"
    r"|(?P<number>[0-9]+(?:[.,:][0-9]+)*)"
)


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failed jobs of one task whose last errors are alike; without an error, those that failed for the same reason.

    `message` is the first line of the latest one's message, `first` and `last` are when the first and the last of them
    ended, and `example` is the id of the last.
    """

    task: str
    error: str | None
    message: str
    count: int
    first: datetime
    last: datetime
    example: UUID

    @property
    def pattern(self) -> str:
        """The message without what differs from job to job: numbers, ids, secrets and what stands in quotes."""
        return folded(redact_text(self.message))  # in this order: folded, a secret would no longer look like one

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "task": self.task,
            "error": self.error,
            "pattern": self.pattern,
            "message": self.message,
            "count": self.count,
            "first": self.first.isoformat(),
            "last": self.last.isoformat(),
            "example": str(self.example),
        }


@dataclass(frozen=True, slots=True)
class Failures:
    """Groups of failed jobs, the largest first, from the `looked` that ended last.

    `back_to` is None if these are all that match; else there may be more that ended before then.
    """

    groups: tuple[FailureGroup, ...]
    looked: int
    back_to: datetime | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "groups": [group.to_dict() for group in self.groups],
            "looked": self.looked,
            "back_to": None if self.back_to is None else self.back_to.isoformat(),
        }


_Key = tuple[str, str | None, str]


class Grouping:
    """Failed jobs, added in any order, in their groups."""

    def __init__(self) -> None:
        self._groups: dict[_Key, FailureGroup] = {}

    def add(self, records: Iterable[JobRecord]) -> None:
        """Put jobs into the groups to which they belong."""
        for record in records:
            one = _alone(record)
            _put(self._groups, (one.task, one.error, folded(one.message)), one)

    def groups(self) -> tuple[FailureGroup, ...]:
        """The groups, the largest first."""
        alike: dict[_Key, FailureGroup] = {}
        for group in self._groups.values():  # to find secrets takes long, and is done here, once for each group
            _put(alike, (group.task, group.error, group.pattern), group)
        return tuple(sorted(alike.values(), key=lambda group: (group.count, group.last), reverse=True))


def folded(message: str) -> str:
    """A message without what differs from job to job."""
    return _DIFFERS.sub(_placeholder, message)


def _placeholder(match: re.Match[str]) -> str:
    kind = match.lastgroup
    return f"{match[0][0]}…{match[0][0]}" if kind in ("double", "single", "tick") else "#"


def _alone(record: JobRecord) -> FailureGroup:
    last = record.errors[-1] if record.errors else None
    said = (record.reason or "no reason given") if last is None else last.message
    ended = record.ended_at or record.created_at
    message = said.strip().partition("\n")[0][:_LONGEST]
    return FailureGroup(record.task, last.type if last else None, message, 1, ended, ended, record.id)


def _put(groups: dict[_Key, FailureGroup], key: _Key, one: FailureGroup) -> None:
    groups[key] = _together(groups[key], one) if key in groups else one


def _together(group: FailureGroup, one: FailureGroup) -> FailureGroup:
    latest = max(group, one, key=lambda either: (either.last, either.example))
    return FailureGroup(
        group.task,
        group.error,
        latest.message,
        group.count + one.count,
        min(group.first, one.first),
        latest.last,
        latest.example,
    )
