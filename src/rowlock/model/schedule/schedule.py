"""Schedule: a rule that makes jobs, and the options of those jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, get_args
from uuid import UUID

from rowlock.errors import InvalidOption, TaskError
from rowlock.model.names import (
    MAX_TAGS,
    check_attempts,
    check_priority,
    check_queue,
    check_schedule,
    check_tags,
    check_task,
    check_version,
    shown,
)
from rowlock.model.plain import plain_fields
from rowlock.model.schedule.cron import Cron
from rowlock.model.schedule.rule import Every, Overlap, Rule, check_catch_up, read_rule
from rowlock.model.spec import DEFAULT_QUEUE, Options, check_expires

MOST_JITTER: Final = timedelta(days=1)
# The jobs of a schedule carry two tags more: its name and their slot.
MOST_TAGS: Final = MAX_TAGS - 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSpec:
    """The specification of a schedule, declared by code or added by an operator; `version` is that of its workflow."""

    name: str
    rule: Rule
    task: str
    args: str = "{}"
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    attempts: int = 10
    version: int | None = None
    expires: timedelta | None = None
    tags: tuple[str, ...] = ()
    jitter: timedelta = timedelta(0)
    overlap: Overlap = "skip"
    catch_up: int = 1
    at_boot: bool = False

    def __post_init__(self) -> None:
        check_schedule(self.name)
        if not isinstance(self.rule, Cron | Every):
            raise InvalidOption(f"schedule {self.name!r}: {shown(self.rule)} is not a rule")
        check_task(self.task)
        check_queue(self.queue)
        check_priority(self.priority)
        check_attempts(self.attempts)
        if self.version is not None:
            check_version(self.version)
        check_expires(self.expires)
        if len(check_tags(self.tags)) > MOST_TAGS:
            raise InvalidOption(
                f"{len(self.tags)} tags are given, and a schedule may have {MOST_TAGS}: its jobs carry two more"
            )
        _check_jitter(self.jitter)
        if self.overlap not in get_args(Overlap):
            raise InvalidOption(f"overlap={shown(self.overlap)} must be 'allow', 'skip', 'queue' or 'replace'")
        if check_catch_up(self.catch_up) > 1 and self.overlap != "allow":
            raise InvalidOption(
                f"catch_up={self.catch_up} makes several jobs at once, which overlap={self.overlap!r} rules out; "
                "give overlap='allow', or catch_up='last'"
            )
        if type(self.at_boot) is not bool:
            raise InvalidOption(f"at_boot={shown(self.at_boot)} must be True or False")

    @property
    def cron(self) -> str | None:
        """The cron expression, if the rule is one."""
        return self.rule.expression if isinstance(self.rule, Cron) else None

    @property
    def tz(self) -> str | None:
        """The time zone of the cron expression; None is UTC."""
        return self.rule.tz if isinstance(self.rule, Cron) else None

    @property
    def every(self) -> timedelta | None:
        """The interval, if the rule is one."""
        return self.rule.interval if isinstance(self.rule, Every) else None

    def to_declared(self) -> dict[str, Any]:
        """The same as JSON values, in a fixed order: spans are seconds, arguments stay JSON text."""
        return {
            "name": self.name,
            "cron": self.cron,
            "tz": self.tz,
            "every": _seconds(self.every),
            "task": self.task,
            "args": self.args,
            "queue": self.queue,
            "priority": self.priority,
            "attempts": self.attempts,
            "version": self.version,
            "expires": _seconds(self.expires),
            "tags": list(self.tags),
            "jitter": _seconds(self.jitter),
            "overlap": self.overlap,
            "catch_up": self.catch_up,
            "at_boot": self.at_boot,
        }

    @classmethod
    def from_declared(cls, declared: Mapping[str, Any]) -> ScheduleSpec:
        """Read what `to_declared` wrote, with or without edits; InvalidOption if it makes no sense."""
        facts = dict(declared)
        try:
            rule = read_rule(facts.pop("cron", None), facts.pop("tz", None), _span(facts.pop("every", None)))
            facts["tags"] = tuple(facts.get("tags") or ())
            facts["jitter"], facts["expires"] = _span(facts.get("jitter", 0)), _span(facts.get("expires"))
            return cls(rule=rule, **facts)
        except (TypeError, OverflowError) as error:
            raise InvalidOption(f"schedule {shown(declared.get('name'))} cannot be read: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule at one moment: what holds, and where that comes from.

    `declared` is what code last said, None if an operator added it; `edits` is what an operator has changed, with
    who (`by`), when (`at`) and perhaps `why`.
    It is an orphan if code declared it once and no live worker's code does any more: it goes on all the same.
    `args`, `declared` and `edits` are None for a role that may not read arguments. `jobs` are those that are live, and
    `held` is a slot that waits for their end.
    """

    name: str
    cron: str | None
    tz: str | None
    every: timedelta | None
    task: str
    args: Any
    queue: str
    priority: int
    attempts: int
    version: int | None
    expires: timedelta | None
    tags: tuple[str, ...]
    jitter: timedelta
    overlap: Overlap
    catch_up: int
    at_boot: bool
    declared: Mapping[str, Any] | None
    edits: Mapping[str, Any] | None
    is_declared: bool
    is_edited: bool
    is_orphan: bool
    paused_at: datetime | None
    paused_until: datetime | None
    paused_by: str | None
    paused_why: str | None
    next_at: datetime
    last_at: datetime | None
    held: datetime | None
    booted_at: datetime | None
    jobs: tuple[UUID, ...]
    created_at: datetime

    @property
    def rule(self) -> Rule:
        """The rule; InvalidOption if this machine does not know its time zone."""
        return read_rule(self.cron, self.tz, self.every)

    @property
    def is_paused(self) -> bool:
        """Whether it is paused: it makes no jobs until somebody, or the clock, resumes it."""
        return self.paused_at is not None

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values: times are strings, spans are seconds."""
        spans = {name: _seconds(getattr(self, name)) for name in ("every", "expires", "jitter")}
        return plain_fields(self) | spans


def check_scheduled(options: Options) -> None:
    """Refuse the options of a call that the jobs of a schedule cannot have."""
    for option, why in _NOT_SCHEDULED.items():
        if getattr(options, option) is not None:
            raise InvalidOption(f"a schedule takes no {option}=: {why}")


_NOT_SCHEDULED: Final = {
    "run_at": "its rule says when",
    "delay": "its rule says when",
    "key": "overlap= says what becomes of a slot while the job before it lives",
    "connection": "workers make its jobs, on connections of their own",
}


def name_after(task: str) -> str:
    """The name that a schedule has unless it is given one: its task's, if that will do."""
    try:
        return check_schedule(task)
    except InvalidOption as error:
        raise TaskError(f"a schedule is named after its task, but {error}; or give name=") from None


def _check_jitter(jitter: object) -> None:
    if not isinstance(jitter, timedelta) or not timedelta(0) <= jitter < MOST_JITTER:
        raise InvalidOption(f"jitter={shown(jitter)} must be a timedelta from zero to under a day")


def _seconds(span: timedelta | None) -> float | int | None:
    if span is None:
        return None
    seconds = span.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def _span(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
