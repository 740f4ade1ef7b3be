"""Schedule edits: an operator's changes, kept apart from what code declares again at every deploy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, Final

from rowlock.errors import InvalidOption
from rowlock.model.schedule.cron import Cron, find_zone
from rowlock.model.schedule.rule import CatchUp, Overlap, Rule, check_catch_up, check_rule
from rowlock.model.schedule.schedule import Schedule, ScheduleSpec

_RULE: Final = ("cron", "tz", "every")
_ANY: Final = ScheduleSpec(name="any", rule=Cron("* * * * *"), task="any", overlap="allow")
_FACTS: Final = tuple(_ANY.to_declared())


@dataclass(frozen=True, slots=True)
class ScheduleChange:
    """A change to write: the schedule as it then is, the operator's edits, and each changed value, old and new."""

    spec: ScheduleSpec
    edits: Mapping[str, Any] | None
    changes: Mapping[str, Any]
    next_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleEdit:
    """What to change; None leaves a thing as it is, an `expires` of zero takes it away. `reset` undoes edits first."""

    rule: str | timedelta | None = None
    tz: str | None = None
    args: Mapping[str, object] | None = None
    queue: str | None = None
    priority: int | None = None
    expires: timedelta | None = None
    jitter: timedelta | None = None
    overlap: Overlap | None = None
    catch_up: CatchUp | None = None
    at_boot: bool | None = None
    reset: bool = False

    def __post_init__(self) -> None:
        if not self.reset and all(getattr(self, field.name) is None for field in fields(self) if field.name != "reset"):
            raise InvalidOption("nothing to change: say what, such as rule= or queue=, or reset=True")
        if self.rule is not None:
            check_rule(self.rule, self.tz)
        elif self.tz is not None:
            find_zone(self.tz)
        replace(_ANY, **self._options())

    def over(self, schedule: Schedule, *, args: str, now: datetime) -> ScheduleChange:
        """The schedule with these changes; `args` is what its arguments then are, as JSON."""
        facts = schedule.to_dict()
        before = {name: facts[name] for name in _FACTS}
        said = self._facts(schedule, args)
        edits = self._edits(schedule, said) if schedule.declared is not None else None
        after = with_edits(schedule.declared or {**before, "args": args, **said}, edits)
        undone = self.reset and "args" in edits_of(schedule.edits)
        changes = _changes(before, after.to_declared(), args=undone or self.args is not None)
        moved = "rule" in changes
        # If the last slot lies ahead, the clock was set back: the next slot comes after that one.
        next_at = after.rule.after(max(now, schedule.last_at or now)) if moved else schedule.next_at
        return ScheduleChange(after, edits, changes, next_at)

    def _options(self) -> dict[str, Any]:
        """The given changes but for the rule and the arguments."""
        given = {
            "queue": self.queue,
            "priority": self.priority,
            "jitter": self.jitter,
            "overlap": self.overlap,
            "catch_up": None if self.catch_up is None else check_catch_up(self.catch_up),
            "at_boot": self.at_boot,
            "expires": self.expires or None,
        }
        return {name: value for name, value in given.items() if value is not None}

    def _facts(self, schedule: Schedule, args: str) -> dict[str, Any]:
        """The given changes, in the form of `to_declared`."""
        said = self._options()
        rule = self._rule(schedule)
        whole = replace(_ANY, **said, args=args, rule=rule or _ANY.rule).to_declared()
        named = set(said) if rule is None else {*said, *_RULE}
        named |= {name for name in ("args", "expires") if getattr(self, name) is not None}
        return {name: whole[name] for name in whole if name in named}

    def _rule(self, schedule: Schedule) -> Rule | None:
        """The new rule; an expression without a zone stays in the zone it had."""
        if self.rule is None and self.tz is None:
            return None
        if isinstance(self.rule, timedelta):
            return check_rule(self.rule)
        expression = self.rule or schedule.cron
        if expression is None:
            raise InvalidOption(f"tz={self.tz!r} is for cron expressions, and {schedule.name!r} has an interval")
        return check_rule(expression, self.tz or schedule.tz)

    def _edits(self, schedule: Schedule, said: Mapping[str, Any]) -> dict[str, Any] | None:
        """The edits from now on: every value that differs from what code declares."""
        declared = schedule.declared or {}
        kept = said if self.reset else {**edits_of(schedule.edits), **said}
        edits = {name: value for name, value in kept.items() if name not in declared or declared[name] != value}
        if edits.keys() & set(_RULE):
            edits |= {name: kept[name] for name in _RULE}  # an interval has no zone: the three go together
        return edits or None


def edits_of(edits: Mapping[str, Any] | None) -> dict[str, Any]:
    """The edited values, without actor, time and reason."""
    return {name: value for name, value in (edits or {}).items() if name in _FACTS}


def with_edits(declared: Mapping[str, Any], edits: Mapping[str, Any] | None) -> ScheduleSpec:
    """What holds: what code declares, and laid over it what an operator says; InvalidOption if that makes no sense."""
    return ScheduleSpec.from_declared({**declared, **edits_of(edits)})


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], *, args: bool) -> dict[str, Any]:
    """The changed values, old and new; without the arguments, as not everybody who reads events may read those."""
    changes: dict[str, Any] = {
        name: [before[name], after[name]]
        for name in after
        if name not in (*_RULE, "args") and before[name] != after[name]
    }
    if rule_text(before) != rule_text(after):
        changes["rule"] = [rule_text(before), rule_text(after)]
    if args:
        changes["args"] = "changed"
    return changes


def rule_text(facts: Mapping[str, Any]) -> str:
    """The rule of a schedule as it is written: the expression and its zone, or the interval."""
    if facts["every"] is not None:
        return f"every {timedelta(seconds=facts['every'])}"
    return " ".join(part for part in (facts["cron"], facts["tz"]) if part is not None)
