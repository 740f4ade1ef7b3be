"""Edits of schedules: whatever is said in whatever order, code and operator stay apart."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowlock.errors import InvalidOption
from rowlock.model.schedule.cron import Cron
from rowlock.model.schedule.edit import ScheduleChange, ScheduleEdit, edits_of, with_edits
from rowlock.model.schedule.rule import read_rule
from rowlock.model.schedule.schedule import Schedule, ScheduleSpec

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
CODE = ScheduleSpec(name="n", rule=Cron("0 3 * * *", "Europe/Paris"), task="t", args='{"a":1}', overlap="allow")

SAID = st.fixed_dictionaries(
    {},
    optional={
        "rule": st.sampled_from(["0 3 * * *", "@hourly", timedelta(minutes=5)]),
        "queue": st.sampled_from(["default", "slow"]),
        "priority": st.integers(-4, 4),
        "expires": st.sampled_from([timedelta(0), timedelta(hours=1)]),
        "jitter": st.sampled_from([timedelta(0), timedelta(seconds=30)]),
        "catch_up": st.sampled_from(["none", "last", 5]),
        "at_boot": st.booleans(),
    },
).filter(bool)


@given(st.lists(SAID, max_size=5), SAID)
def test_what_holds_is_what_code_says_with_the_edits_laid_over_it(
    edits: list[dict[str, Any]], last: dict[str, Any]
) -> None:
    schedule = seen(CODE, declared=True)

    for said in (*edits, last):
        schedule = written(schedule, ScheduleEdit(**said).over(schedule, args=CODE.args, now=NOW))

    holds = with_edits(CODE.to_declared(), schedule.edits)
    assert facts(schedule) == holds.to_declared() | {"args": schedule.args}
    for name in last.keys() - {"rule", "expires", "catch_up"}:
        assert getattr(schedule, name) == last[name]
    declared = CODE.to_declared()
    assert all(
        edits_of(schedule.edits)[name] != declared[name]
        for name in edits_of(schedule.edits).keys() - {"cron", "tz", "every"}
    )


@given(st.lists(SAID, max_size=3))
def test_a_reset_leaves_no_edit(edits: list[dict[str, Any]]) -> None:
    schedule = seen(CODE, declared=True)
    for said in edits:
        schedule = written(schedule, ScheduleEdit(**said).over(schedule, args=CODE.args, now=NOW))

    undone = ScheduleEdit(reset=True).over(schedule, args=CODE.args, now=NOW)

    assert undone.edits is None
    assert undone.spec == CODE


@given(SAID)
def test_what_no_code_declares_is_changed_itself(said: dict[str, Any]) -> None:
    schedule = seen(CODE, declared=False)

    edited = ScheduleEdit(**said).over(schedule, args=CODE.args, now=NOW)

    assert edited.edits is None
    assert ("rule" in edited.changes) == (edited.spec.rule != CODE.rule)
    assert (edited.next_at != schedule.next_at) == ("rule" in edited.changes)
    assert edited.next_at > NOW


def test_a_new_rule_never_brings_back_a_slot_that_was_fired() -> None:
    ahead = NOW + timedelta(days=2)
    schedule = replace(seen(CODE, declared=False), last_at=ahead)

    assert ScheduleEdit(rule="@hourly").over(schedule, args="{}", now=NOW).next_at > ahead


@pytest.mark.parametrize(
    "said",
    [{}, {"tz": "No/Zone"}, {"rule": "x"}, {"queue": "a,b"}, {"priority": 5}, {"overlap": "x"}, {"catch_up": -1}],
)
def test_what_makes_no_sense_is_refused_at_once(said: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        ScheduleEdit(**said)


def seen(spec: ScheduleSpec, *, declared: bool) -> Schedule:
    facts = spec.to_declared() | {"args": {"a": 1}, "every": spec.every, "expires": spec.expires, "jitter": spec.jitter}
    return Schedule(
        **facts | {"tags": spec.tags},
        declared=spec.to_declared() if declared else None,
        edits=None,
        is_declared=declared,
        is_edited=False,
        is_orphan=False,
        paused_at=None,
        paused_until=None,
        paused_by=None,
        paused_why=None,
        next_at=NOW + timedelta(minutes=1, seconds=1),
        last_at=None,
        held=None,
        booted_at=None,
        jobs=(),
        created_at=NOW,
    )


def written(schedule: Schedule, edited: ScheduleChange) -> Schedule:
    """The schedule as it is read again."""
    spec = edited.spec
    changed = seen(spec, declared=True)
    who = {"by": "ann", "at": NOW.isoformat()}
    edits = None if edited.edits is None else {**edited.edits, **who}
    assert read_rule(changed.cron, changed.tz, changed.every) == spec.rule
    return replace(changed, declared=schedule.declared, edits=edits, next_at=edited.next_at)


def facts(schedule: Schedule) -> dict[str, Any]:
    told = schedule.to_dict()
    return {name: told[name] for name in CODE.to_declared()}
