"""Filter: which jobs an operator means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final, get_args
from uuid import UUID

from rowlock.errors import InvalidArguments, InvalidOption
from rowlock.model.names import MAX_KEY, MAX_NAME, MAX_TAG, check_moment, check_text, shown
from rowlock.model.payload.arguments import encode_untyped
from rowlock.model.plain import plain
from rowlock.model.record import State

STATES: Final[tuple[State, ...]] = get_args(State)
LIVE: Final[frozenset[State]] = frozenset({"waiting", "parked", "ready", "running"})
ENDED: Final[frozenset[State]] = frozenset(STATES) - LIVE
_MAX_ERROR: Final = 400
_MAX_REASON: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which jobs: those to which everything that is given here applies; without anything, every job.

    Lists take an empty filter; what changes jobs refuses one, for it may be empty by mistake: `Filter.all()` says it.

    `state` may be one or several. `args` names arguments and the JSON value that each must equal. `error` is the type
    of the last error, `ConnectionError` in whatever module; `reason` is why a job failed, was cancelled or waits.
    `since` and `until` say when it was created; one whose enqueuer's clock was over a day slow may escape `since`.
    `ended_after` and `ended_before` say when it ended: no live job matches these.
    """

    state: State | Iterable[State] | None = None
    queue: str | None = None
    task: str | None = None
    tag: str | None = None
    key: str | None = None
    args: Mapping[str, Any] | None = None
    since: datetime | None = None
    until: datetime | None = None
    ended_after: datetime | None = None
    ended_before: datetime | None = None
    error: str | None = None
    reason: str | None = None
    ids: Iterable[UUID | str] | None = None
    _is_all: bool = field(default=False, init=False, repr=False)

    @classmethod
    def all(cls) -> Filter:
        """Every job, on purpose."""
        every = cls()
        object.__setattr__(every, "_is_all", True)
        return every

    def __post_init__(self) -> None:
        # Names are checked less strictly than at enqueue: jobs may have come in by SQL, and must be found.
        limits = {"queue": MAX_NAME, "task": MAX_NAME, "tag": MAX_TAG, "key": MAX_KEY}
        for name, limit in (limits | {"error": _MAX_ERROR, "reason": _MAX_REASON}).items():
            if (text := getattr(self, name)) is not None:
                check_text(name, text, limit=limit)
        for first, last in (("since", "until"), ("ended_after", "ended_before")):
            _check_between(first, getattr(self, first), last, getattr(self, last))
        # Frozen for others: values that may be given in several forms are kept in one.
        object.__setattr__(self, "state", _states(self.state))
        object.__setattr__(self, "ids", _ids(self.ids))
        object.__setattr__(self, "args", None if self.args is None else _args(self.args))

    @property
    def states(self) -> frozenset[State] | None:
        """The states that are named; None for any."""
        return None if self.state is None else frozenset(self.state)  # type: ignore[arg-type]  # a tuple by now

    @property
    def is_of_ended(self) -> bool:
        """Whether it says when a job ended, so that no live one matches."""
        return self.ended_after is not None or self.ended_before is not None

    @property
    def is_by_end(self) -> bool:
        """Whether its jobs are listed by when they ended: all have, and none is named by its id."""
        return self.ids is None and (self.is_of_ended or (self.state is not None and LIVE.isdisjoint(self.state)))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is given, nor that every job is meant."""
        return not self._is_all and not self.to_dict()

    @property
    def args_json(self) -> str | None:
        """The arguments as JSON."""
        return None if self.args is None else encode_untyped(self.args)

    def to_dict(self) -> dict[str, Any]:
        """The conditions given, as JSON values."""
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        return {name: plain(value) for name, value in given.items() if value is not None}


def _states(state: State | Iterable[State] | None) -> tuple[State, ...] | None:
    if state is None:
        return None
    if not isinstance(state, Iterable):
        raise InvalidOption(f"state={shown(state)} must be a str or several; use {', '.join(STATES)}")
    named = (state,) if isinstance(state, str) else tuple(state)
    if not named:
        raise InvalidOption("state=() names no state; leave it out for any")
    if unknown := [one for one in named if one not in STATES]:
        raise InvalidOption(f"state {shown(unknown[0])} is none of {', '.join(STATES)}")
    return tuple(one for one in STATES if one in named)


def _check_between(first: str, start: datetime | None, last: str, end: datetime | None) -> None:
    for name, moment in ((first, start), (last, end)):
        if moment is not None:
            check_moment(name, moment)
    if start is not None and end is not None and end <= start:
        raise InvalidOption(f"{last}={end} is not after {first}={start}; between them there is nothing")


def _ids(ids: Iterable[UUID | str] | None) -> tuple[UUID, ...] | None:
    """Each once, newest first. None at all is any job, but an empty list is none."""
    if ids is None:
        return None
    if isinstance(ids, str | UUID) or not isinstance(ids, Iterable):
        raise InvalidOption(f"ids={shown(ids)} must be several; write ids=[…]")
    return tuple(sorted({check_id(one) for one in ids}, reverse=True))


def check_id(given: UUID | str) -> UUID:
    """A job's id."""
    try:
        return given if isinstance(given, UUID) else UUID(given)
    except (ValueError, AttributeError, TypeError):
        raise InvalidOption(
            f"id {shown(given)} is not a UUID; use a job's id, such as {UUID(int=7 << 76 | 1 << 63)}"
        ) from None


def _args(args: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(args, Mapping):
        raise InvalidOption(f"args={shown(args)} must be a mapping of arguments by name; write args={{'x': 1}}")
    try:
        encode_untyped(args)
    except InvalidArguments as error:
        raise InvalidOption(f"args: {error}") from error
    return dict(args)
