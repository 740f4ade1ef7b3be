"""Declared schedules: written by a worker that starts, from its code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from rowlock.errors import InvalidOption
from rowlock.model.schedule.cron import Cron
from rowlock.model.schedule.edit import with_edits
from rowlock.model.schedule.rule import Rule, read_rule
from rowlock.model.schedule.schedule import ScheduleSpec
from rowlock.store.query import Conversation, Query, array, first, instant, interval, numbers, plain_array

# Others who start at the same moment may be writing the same rows: then what they wrote is looked at again.
_ROUNDS = 10


class StoredSchedule(NamedTuple):
    """A schedule as it stands in the database."""

    name: str
    version: str  # the transaction that wrote it
    cron: str | None
    tz: str | None
    every: str | None  # seconds
    declared: str | None
    edits: str | None
    next_at: str
    last_at: str | None

    @property
    def rule(self) -> Rule:
        """Its rule; InvalidOption or ValueError if this machine cannot read it."""
        return read_rule(self.cron, self.tz, None if self.every is None else timedelta(seconds=float(self.every)))


class ScheduleWrite(NamedTuple):
    """A schedule to write: what holds, what of it code says, and which version of it was looked at."""

    spec: ScheduleSpec
    declared: str
    version: str | None
    next_at: datetime | str


class DeclareResult(NamedTuple):
    """What came of declaring: the schedules that were written, and those that were left as they are, and why."""

    written: list[str]
    left: dict[str, str]


def declare(specs: Iterable[ScheduleSpec], *, now: datetime, anew: bool) -> Conversation[DeclareResult]:
    """Enter the schedules that code declares and, unless this worker has done so before, bring changed ones up to date.

    What an operator has edited stays edited. The next slot is recomputed only where the rule is another one, or gives
    another slot than it did.
    """
    left = {spec.name: spec for spec in specs}
    answer = DeclareResult([], {})
    for _ in range(_ROUNDS):
        known: dict[str, StoredSchedule] = {row.name: row for row in (yield stored(left))}
        to_correct = _drifted(known.values(), now)
        if to_correct:
            yield correct(to_correct)
        to_write: list[ScheduleWrite] = []
        for spec in left.values():
            try:
                to_write += _changed(spec, known.get(spec.name), now=now, anew=anew)
            except (InvalidOption, ValueError, OverflowError) as error:
                answer.left[spec.name] = str(error)
        done: list[str] = (yield write(to_write)) if to_write else []
        answer.written.extend(done)
        left = {one.spec.name: left[one.spec.name] for one in to_write if one.spec.name not in done}
        if not left:
            break
    return answer


def stored(names: Iterable[str]) -> Query[StoredSchedule]:
    """What there is of these schedules, and of all that go by a time zone."""
    return Query("schedule_declared", {"names": array(names)}, lambda row: StoredSchedule(*row))


def write(changes: Sequence[ScheduleWrite]) -> Query[str]:
    """Write schedules, unless somebody else has written them since they were looked at; returns the names of those."""
    changes = sorted(changes, key=lambda change: change.spec.name)  # two who write the same do so in the same order
    specs = [change.spec for change in changes]
    return Query(
        "schedule_declare",
        {
            "names": array(spec.name for spec in specs),
            "versions": array(change.version for change in changes),
            "crons": array(spec.cron for spec in specs),
            "zones": array(spec.tz for spec in specs),
            "everys": _spans(spec.every for spec in specs),
            "tasks": array(spec.task for spec in specs),
            "args": array(spec.args for spec in specs),
            "queues": array(spec.queue for spec in specs),
            "priorities": plain_array(str(spec.priority) for spec in specs),
            "attempts": plain_array(str(spec.attempts) for spec in specs),
            "code_versions": numbers(spec.version for spec in specs),
            "expires": _spans(spec.expires for spec in specs),
            "tags": array(array(spec.tags) if spec.tags else None for spec in specs),
            "jitters": _spans(spec.jitter for spec in specs),
            "overlaps": plain_array(spec.overlap for spec in specs),
            "catch_ups": plain_array(str(spec.catch_up) for spec in specs),
            "at_boots": plain_array(str(spec.at_boot).lower() for spec in specs),
            "declared": array(change.declared for change in changes),
            "next_ats": array(_moment(change.next_at) for change in changes),
        },
        first,
    )


def correct(moves: Iterable[tuple[StoredSchedule, datetime]]) -> Query[str]:
    """Move next slots, unless somebody else has written their schedules meanwhile."""
    rows = list(moves)
    return Query(
        "schedule_correct",
        {
            "names": array(known.name for known, _ in rows),
            "versions": plain_array(known.version for known, _ in rows),
            "next_ats": array(instant(slot) for _, slot in rows),
        },
        first,
    )


def _changed(spec: ScheduleSpec, known: StoredSchedule | None, *, now: datetime, anew: bool) -> Iterable[ScheduleWrite]:
    """What to write of a schedule, if it is new or not as code says any more."""
    declared = json.dumps(spec.to_declared(), ensure_ascii=False)
    if known is None:
        yield ScheduleWrite(spec, declared, None, spec.rule.after(now))
    elif anew and (known.declared is None or json.loads(known.declared) != json.loads(declared)):
        holds = with_edits(spec.to_declared(), json.loads(known.edits or "{}"))
        is_same = (holds.cron, holds.tz) == (known.cron, known.tz) and holds.every == _span(known.every)
        yield ScheduleWrite(holds, declared, known.version, known.next_at if is_same else holds.rule.after(now))


def _drifted(known: Iterable[StoredSchedule], now: datetime) -> list[tuple[StoredSchedule, datetime]]:
    """Schedules whose next slot is not the one that their rule gives: the data of their time zone has changed."""
    found = []
    for row in known:
        try:
            next_at, rule = datetime.fromisoformat(row.next_at), row.rule
            last_at = now if row.last_at is None else datetime.fromisoformat(row.last_at)
            if isinstance(rule, Cron) and next_at > now and (slot := rule.after(max(now, last_at))) != next_at:
                found.append((row, slot))
        except (InvalidOption, ValueError, OverflowError):
            continue  # it is told of when it is due
    return found


def _span(seconds: str | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=float(seconds))


def _spans(spans: Iterable[timedelta | None]) -> str:
    return array(None if span is None else interval(span) for span in spans)


def _moment(moment: datetime | str) -> str:
    return moment if isinstance(moment, str) else instant(moment)
