"""Filter parameters: the jobs that an address means, as typed and as chips show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints

from rowlock.dashboard.page import Params
from rowlock.errors import InvalidArguments, InvalidOption
from rowlock.model.filter import Filter
from rowlock.model.record import State
from rowlock.model.typed import before, read_argument, read_object, read_time

_MOST_IDS: Final = 1_000
_MOST_ARGS: Final = 20
NAMES: Final = ("queue", "task", "tag", "key", "error", "reason")
"""Fields that a filter compares as they are written."""
MOMENTS: Final = {
    "since": "created since",
    "until": "created before",
    "ended_after": "ended since",
    "ended_before": "ended before",
}
"""Moments between which a job was created, and has ended."""


def _check_past(typed: str) -> str:
    try:
        read_time(typed)
    except InvalidOption as fault:
        raise ValueError(str(fault)) from fault
    return typed


def _check_argument(typed: str) -> str:
    try:
        read_arguments(typed)
    except (InvalidOption, InvalidArguments) as fault:
        raise ValueError(str(fault)) from fault
    return typed


Name = Annotated[str, StringConstraints(max_length=4096)]
Past = Annotated[str, StringConstraints(max_length=100), AfterValidator(_check_past)]
Argument = Annotated[str, StringConstraints(max_length=10_000), AfterValidator(_check_argument)]


@dataclass(frozen=True, slots=True)
class FilterTerm:
    """One term of a filter: its name, its value, and the query parameters without it."""

    name: str
    value: str
    without: Mapping[str, Any]


class JobFilterParams(Params):
    """Jobs to which all of this applies; without any of it, every job."""

    state: tuple[State, ...] = ()
    queue: Name | None = None
    task: Name | None = None
    tag: Name | None = None
    key: Name | None = None
    error: Name | None = None
    reason: Name | None = None
    arg: Annotated[tuple[Argument, ...], Field(max_length=_MOST_ARGS)] = ()  # each NAME=JSON, or a JSON object
    since: Past | None = None
    until: Past | None = None
    ended_after: Past | None = None
    ended_before: Past | None = None
    ids: Annotated[tuple[UUID, ...], Field(max_length=_MOST_IDS)] = ()

    def given(self) -> dict[str, Any]:
        """The filter's query parameters, without those that choose a page of it or an operation."""
        values = {name: getattr(self, name) for name in JobFilterParams.model_fields}
        return {name: value for name, value in values.items() if value}

    @property
    def is_everything(self) -> bool:
        """Whether there is no filter, so that every job is meant."""
        return not self.given()

    def filter(self, now: datetime) -> Filter:
        """The filter; spans such as `2h` are counted back from the database's time."""
        arguments: dict[str, Any] = {}
        for typed in self.arg:
            arguments |= read_arguments(typed)
        return Filter(
            state=self.state or None,
            **{name: getattr(self, name) for name in NAMES},
            args=arguments or None,
            since=_instant(self.since, now),
            until=_instant(self.until, now),
            ended_after=_instant(self.ended_after, now),
            ended_before=_instant(self.ended_before, now),
            ids=self.ids or None,
        )

    def terms(self) -> Iterator[FilterTerm]:
        """The terms of the filter but the state, one by one."""
        given = self.given()
        for name in (*NAMES, *MOMENTS):
            if name in given:
                yield FilterTerm(MOMENTS.get(name, name), given[name], _without(given, name))
        for typed in self.arg:
            rest = tuple(other for other in self.arg if other != typed)
            yield FilterTerm("argument", typed, given | {"arg": rest})
        if self.ids:
            yield FilterTerm(
                "ids", f"{len(self.ids):,} chosen" if len(self.ids) > 1 else str(self.ids[0]), _without(given, "ids")
            )


def read_arguments(typed: str) -> dict[str, Any]:
    """Arguments to compare: a JSON object of them, or one as NAME=JSON, where a bare word is a string."""
    if typed.strip().startswith("{"):
        return read_object(typed, repr(typed))
    name, value = read_argument(typed)
    return {name: value}


def _instant(typed: str | None, now: datetime) -> datetime | None:
    return None if typed is None else before(read_time(typed), now)


def _without(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {other: value for other, value in given.items() if other != name}
