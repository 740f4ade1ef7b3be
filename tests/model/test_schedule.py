"""Schedules as values: intervals, what may be declared, and how that is stored and shown."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowlock.errors import InvalidOption
from rowlock.model.schedule.cron import Cron
from rowlock.model.schedule.rule import LONGEST, Every, check_catch_up, check_rule, read_rule
from rowlock.model.schedule.schedule import Schedule, ScheduleSpec

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
TICK = timedelta(microseconds=1)
NINE = datetime(2026, 1, 5, 9, tzinfo=UTC)


# Intervals


def test_an_interval_begins_a_whole_second_after_it_was_declared() -> None:
    declared = NINE + timedelta(seconds=3.25)

    first = Every(5 * MINUTE).after(declared)

    assert first == NINE + 5 * MINUTE + 3 * SECOND
    assert Every(SECOND).after(declared) == NINE + 4 * SECOND
    assert Every(SECOND).after(NINE) == NINE + SECOND


@given(
    interval=st.integers(1, 4000).map(lambda seconds: seconds * SECOND),
    anchor=st.integers(-(10**6), 10**6).map(lambda seconds: NINE + seconds * SECOND),
    after=st.integers(-(10**9), 10**9).map(lambda micros: NINE + micros * TICK),
    span=st.integers(0, 10**10).map(lambda micros: micros * TICK),
    limit=st.integers(0, 30),
)
def test_the_slots_of_an_interval_keep_in_step_with_their_anchor(
    interval: timedelta, anchor: datetime, after: datetime, span: timedelta, limit: int
) -> None:
    rule, upto = Every(interval), after + span

    newest = rule.latest(after, upto, limit, anchor)
    following = rule.after(upto, anchor)

    assert upto < following <= upto + interval
    assert [*newest, following] == [following - n * interval for n in range(len(newest), -1, -1)]
    assert all(after < slot <= upto for slot in newest)
    assert len(newest) == min(limit, (following - after - TICK) // interval)
    assert (following - anchor) % interval == timedelta(0)


@pytest.mark.parametrize(
    ("interval", "says"),
    [
        (timedelta(0), "every 0:00:00 must be whole seconds, from 1 second to 3,650 days"),
        (-MINUTE, "must be whole seconds"),
        (0.5 * SECOND, "must be whole seconds"),
        (1.5 * SECOND, "must be whole seconds"),
        (LONGEST + SECOND, "must be whole seconds"),
        (timedelta.max, "must be whole seconds"),
        (60, "every 60 must be a timedelta; write timedelta"),
    ],
)
def test_an_interval_is_of_whole_seconds_and_at_most_ten_years(interval: timedelta, says: str) -> None:
    with pytest.raises(InvalidOption, match=says):
        Every(interval)


def test_a_zone_is_for_cron_expressions() -> None:
    with pytest.raises(InvalidOption, match=r"tz='Europe/Paris' is for cron expressions"):
        check_rule(HOUR, "Europe/Paris")
    with pytest.raises(InvalidOption, match="either a cron expression or an interval"):
        read_rule("@daily", None, HOUR)
    with pytest.raises(InvalidOption, match="either a cron expression or an interval"):
        read_rule(None, None, None)


# Declarations


def spec(**facts: Any) -> ScheduleSpec:  # noqa: ANN401  also such as are refused
    given: dict[str, Any] = {"name": "nightly", "rule": Cron("0 3 * * *"), "task": "reports.send"} | facts
    return ScheduleSpec(**given)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"name": ""}, "schedule name '' takes 0 bytes of UTF-8; use 1 to 90"),
        ({"name": "n" * 91}, "takes 91 bytes of UTF-8; use 1 to 90"),
        ({"name": "\N{SNOWMAN}" * 31}, "takes 93 bytes of UTF-8"),
        ({"name": "a,b"}, r"contains '\*', ',' or '='"),
        ({"name": "a\nb"}, "cannot be seen"),
        ({"name": 5}, "must be a str"),
        ({"rule": "0 3 * * *"}, "schedule 'nightly': '0 3 .*' is not a rule"),
        ({"task": ""}, "task name ''"),
        ({"queue": "a=b"}, "queue name 'a=b'"),
        ({"priority": 5}, "priority=5"),
        ({"attempts": 0}, "attempts=0"),
        ({"expires": timedelta(0)}, "expires=0"),
        ({"expires": 60}, "expires=60"),
        ({"tags": ["t"] * 19}, "19 tags are given, and a schedule may have 18: its jobs carry two more"),
        ({"tags": ["\n"]}, "cannot be seen"),
        ({"jitter": -SECOND}, "jitter=.* must be a timedelta from zero to under a day"),
        ({"jitter": DAY}, "jitter=.* must be a timedelta from zero to under a day"),
        ({"jitter": 5}, "jitter=5 must be a timedelta"),
        ({"overlap": "drop"}, "overlap='drop' must be 'allow', 'skip', 'queue' or 'replace'"),
        ({"overlap": ["allow"]}, "overlap=.* must be 'allow'"),
        ({"overlap": "allow", "catch_up": 1001}, "catch_up=1001 must be 'none', 'last' or a number up to 1,000"),
        ({"catch_up": -1}, "catch_up=-1 must be"),
        ({"catch_up": True}, "catch_up=True must be"),
        (
            {"catch_up": 2},
            "catch_up=2 makes several jobs at once, which overlap='skip' rules out; give overlap='allow'",
        ),
        ({"at_boot": 1}, "at_boot=1 must be True or False"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(facts: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidOption, match=says):
        spec(**facts)


def test_catch_up_is_a_number_of_slots() -> None:
    assert [check_catch_up("none"), check_catch_up("last"), check_catch_up(7)] == [0, 1, 7]
    with pytest.raises(InvalidOption, match="catch_up='all' must be 'none', 'last' or a number up to 1,000"):
        check_catch_up("all")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match=r"catch_up=1\.0 must be"):
        check_catch_up(1.0)  # type: ignore[arg-type]


specs = st.builds(
    ScheduleSpec,
    name=st.text("ab\N{SNOWMAN}.-'\"", min_size=1, max_size=20),
    rule=st.sampled_from([Cron("0 3 * * *"), Cron("@daily", "Europe/Paris"), Every(SECOND), Every(LONGEST)]),
    task=st.just("reports.send"),
    args=st.sampled_from(["{}", '{"x":1e22,"y":-0.0,"z":"\N{SNOWMAN}"}']),
    queue=st.sampled_from(["default", "slow"]),
    priority=st.integers(-4, 4),
    attempts=st.integers(1, 10**9),
    expires=st.none() | st.timedeltas(TICK, 36500 * DAY),
    tags=st.lists(st.text("ab", min_size=1, max_size=3), max_size=18).map(tuple),
    jitter=st.timedeltas(timedelta(0), DAY - TICK),
    overlap=st.just("allow"),
    catch_up=st.integers(0, 1000),
    at_boot=st.booleans(),
)


@given(specs, specs)
def test_what_is_declared_survives_json_and_is_equal_if_the_schedules_are(
    one: ScheduleSpec, other: ScheduleSpec
) -> None:
    stored = json.dumps(one.to_declared())

    assert ScheduleSpec.from_declared(json.loads(stored)) == one
    assert (json.dumps(other.to_declared()) == stored) == (other == one)


def test_edits_are_laid_over_what_is_declared() -> None:
    declared = spec(rule=Cron("0 3 * * *", "Europe/Paris"), queue="slow").to_declared()

    edited = ScheduleSpec.from_declared(declared | {"cron": None, "tz": None, "every": 300, "overlap": "queue"})

    assert edited == spec(rule=Every(5 * MINUTE), queue="slow", overlap="queue")


@pytest.mark.parametrize(
    "edits",
    [
        {"cron": "0 25 * * *"},
        {"tz": "Mars/Phobos"},
        {"every": 300},
        {"cron": None, "tz": None, "every": "5m"},
        {"cron": None, "tz": None, "every": 1e300},
        {"jitter": None},
        {"tags": 5},
        {"colour": "red"},
        {"catch_up": 5},
    ],
)
def test_edits_that_make_no_sense_are_refused(edits: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        ScheduleSpec.from_declared(spec(rule=Cron("@daily", "Europe/Paris")).to_declared() | edits)


def test_a_schedule_is_shown_as_json_knows_it() -> None:
    asked = spec(rule=Every(HOUR), jitter=0.5 * SECOND, tags=("a",))
    facts: dict[str, Any] = {name: getattr(asked, name) for name in asked.to_declared()}
    facts |= {"args": {"x": 1}, "is_declared": False, "is_edited": False, "is_orphan": False, "jobs": (UUID(int=7),)}
    facts |= dict.fromkeys(["declared", "edits", "paused_until", "paused_why", "last_at", "held", "booted_at"])
    seen = Schedule(**facts, paused_at=NINE, paused_by="ada", next_at=NINE + HOUR, created_at=NINE)

    shown = json.loads(json.dumps(seen.to_dict()))

    assert (seen.rule, seen.is_paused) == (Every(HOUR), True)
    assert not replace(seen, paused_at=None).is_paused
    assert (shown["every"], shown["jitter"], shown["tags"], shown["args"]) == (3600, 0.5, ["a"], {"x": 1})
    assert (shown["next_at"], shown["jobs"]) == ("2026-01-05T10:00:00+00:00", [str(UUID(int=7))])
