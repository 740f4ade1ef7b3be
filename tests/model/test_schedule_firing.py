"""The plan for the slots of a schedule that have come: what is made up for, what overlaps, and a life at random."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowlock.model.schedule.cron import Cron
from rowlock.model.schedule.firing import MOST_TOLD, DueSchedule, FiringPlan, PassedSlot, Reason, plan
from rowlock.model.schedule.rule import Every, Overlap, Rule

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
TICK = timedelta(microseconds=1)
NINE = datetime(2026, 1, 5, 9, tzinfo=UTC)


# What is made up for


def due(**facts: Any) -> DueSchedule:  # noqa: ANN401  whatever differs
    return replace(
        DueSchedule(rule=Cron("0 * * * *"), catch_up=1, overlap="skip", next_at=NINE, last_at=NINE - HOUR),
        **facts,
    )


def clock(*hours: int) -> tuple[datetime, ...]:
    return tuple(NINE.replace(hour=hour) for hour in hours)


def told(reason: Reason, *hours: int) -> tuple[PassedSlot, ...]:
    return tuple(PassedSlot(slot, reason) for slot in clock(*hours))


def test_nothing_is_done_before_the_next_slot() -> None:
    waiting = due()

    planned = plan(waiting, NINE - TICK)

    assert planned == FiringPlan(next_at=NINE, last_at=NINE - HOUR, held=None)
    assert not planned.changes(waiting)


@pytest.mark.parametrize("catch_up", [0, 1, 2, 1000])
@pytest.mark.parametrize("late", [timedelta(0), SECOND, MINUTE])
def test_a_slot_that_has_just_come_is_fired_whatever_catch_up_says(catch_up: int, late: timedelta) -> None:
    waiting = due(catch_up=catch_up)

    planned = plan(waiting, NINE + late)

    assert planned == FiringPlan(fire=(NINE,), next_at=NINE + HOUR, last_at=NINE, held=None)
    assert planned.changes(waiting)


@pytest.mark.parametrize(
    ("catch_up", "minute", "fired", "passed"),
    [
        (0, 0, (13,), (9, 10, 11, 12)),
        (0, 30, (), (9, 10, 11, 12, 13)),
        (1, 0, (13,), (9, 10, 11, 12)),
        (1, 30, (13,), (9, 10, 11, 12)),
        (3, 0, (11, 12, 13), (9, 10)),
        (3, 30, (11, 12, 13), (9, 10)),
        (9, 30, (9, 10, 11, 12, 13), ()),
    ],
)
def test_of_the_slots_that_were_missed_so_many_are_made_up_for(
    catch_up: int, minute: int, fired: tuple[int, ...], passed: tuple[int, ...]
) -> None:
    planned = plan(due(catch_up=catch_up, overlap="allow"), NINE.replace(hour=13, minute=minute))

    assert (planned.fire, planned.passed) == (clock(*fired), told("missed", *passed))
    assert (planned.last_at, planned.next_at) == clock(13, 14)


def test_a_year_of_missed_seconds_is_passed_over_and_told_in_part() -> None:
    now = NINE + 365 * DAY + 0.5 * SECOND

    planned = plan(due(rule=Cron("* * * * * *", "Europe/Paris"), catch_up=2, overlap="allow"), now)

    assert planned.fire == (NINE + 365 * DAY - SECOND, NINE + 365 * DAY)
    assert [passed.slot for passed in planned.passed] == [
        NINE + 365 * DAY - n * SECOND for n in range(MOST_TOLD + 1, 1, -1)
    ]
    assert planned.next_at == NINE + 365 * DAY + SECOND


def test_an_interval_keeps_its_step_through_an_outage() -> None:
    planned = plan(due(rule=Every(7 * MINUTE)), NINE + HOUR)

    assert (planned.fire, planned.next_at) == ((NINE + 56 * MINUTE,), NINE + 63 * MINUTE)


def test_a_clock_that_goes_back_brings_nothing_again() -> None:
    fired = plan(due(), NINE)
    after = due(next_at=fired.next_at, last_at=fired.last_at)

    for back in (SECOND, HOUR, 400 * DAY):
        assert not plan(after, NINE - back).changes(after)


def test_a_next_slot_that_is_none_any_more_is_not_fired() -> None:
    moved = due(rule=Cron("30 9 * * *"))  # the data of its time zone has changed

    planned = plan(moved, NINE + SECOND)

    assert planned == FiringPlan(next_at=NINE + 30 * MINUTE, last_at=NINE - HOUR, held=None)


# Pauses


def test_slots_during_a_pause_are_passed_over() -> None:
    planned = plan(due(paused_at=NINE - HOUR, overlap="allow", catch_up=5), NINE + HOUR)

    assert (planned.fire, planned.passed) == ((), told("paused", 9, 10))
    assert (planned.last_at, planned.next_at) == clock(10, 11)


def test_slots_during_a_pause_that_is_over_are_not_made_up_for() -> None:
    paused = due(paused_at=NINE - HOUR, paused_until=NINE.replace(hour=11), overlap="allow", catch_up=5)

    planned = plan(paused, NINE.replace(hour=12, minute=30))

    assert (planned.fire, planned.passed) == (clock(11, 12), told("paused", 9, 10))


def test_a_slot_that_was_held_before_a_pause_waits_for_its_end() -> None:
    paused = due(overlap="queue", held=NINE - HOUR, paused_at=NINE - HOUR)

    assert plan(paused, NINE - MINUTE) == FiringPlan(next_at=NINE, last_at=NINE - HOUR, held=NINE - HOUR)
    assert plan(replace(paused, paused_at=None), NINE - MINUTE).fire == (NINE - HOUR,)


# Jobs that would overlap


@pytest.mark.parametrize(
    ("overlap", "live", "held", "planned"),
    [
        ("allow", 1, None, FiringPlan(fire=clock(9), next_at=NINE, last_at=None, held=None)),
        ("allow", 1, 8, FiringPlan(fire=clock(8, 9), next_at=NINE, last_at=None, held=None)),
        ("skip", 0, None, FiringPlan(fire=clock(9), next_at=NINE, last_at=None, held=None)),
        ("skip", 1, None, FiringPlan(passed=told("overlap", 9), next_at=NINE, last_at=None, held=None)),
        ("skip", 1, 8, FiringPlan(passed=told("overlap", 8, 9), next_at=NINE, last_at=None, held=None)),
        ("queue", 0, None, FiringPlan(fire=clock(9), next_at=NINE, last_at=None, held=None)),
        ("queue", 1, None, FiringPlan(next_at=NINE, last_at=None, held=NINE)),
        ("queue", 1, 8, FiringPlan(passed=told("overlap", 9), next_at=NINE, last_at=None, held=NINE - HOUR)),
        ("queue", 0, 8, FiringPlan(fire=clock(8), next_at=NINE, last_at=None, held=NINE)),
        ("replace", 0, None, FiringPlan(fire=clock(9), next_at=NINE, last_at=None, held=None)),
        ("replace", 2, None, FiringPlan(next_at=NINE, last_at=None, held=NINE, cancel=True)),
        ("replace", 2, 8, FiringPlan(passed=told("replaced", 8), next_at=NINE, last_at=None, held=NINE, cancel=True)),
        ("replace", 0, 8, FiringPlan(fire=clock(9), passed=told("replaced", 8), next_at=NINE, last_at=None, held=None)),
    ],
)
def test_a_slot_that_meets_the_job_before_it(
    overlap: Overlap, live: int, held: int | None, planned: FiringPlan
) -> None:
    met = due(overlap=overlap, live=live, held=None if held is None else NINE.replace(hour=held))

    assert plan(met, NINE) == replace(planned, next_at=NINE + HOUR, last_at=NINE)


def test_what_is_held_is_fired_between_slots_as_soon_as_no_job_is_live() -> None:
    for overlap in ("queue", "replace"):
        held = due(overlap=overlap, next_at=NINE + HOUR, last_at=NINE, held=NINE)

        free, still = plan(held, NINE + MINUTE), plan(replace(held, live=1), NINE + MINUTE)

        assert (free.fire, free.held, free.cancel) == ((NINE,), None, False)
        assert (still.fire, still.held, still.cancel) == ((), NINE, overlap == "replace")


# A schedule's life at random, with jobs that end, pauses, and a clock that jumps


@dataclass
class Life:
    """A schedule that lives by its plans, and all that became of its slots."""

    due: DueSchedule
    now: datetime = NINE
    fired: list[datetime] = field(default_factory=list)
    passed: list[datetime] = field(default_factory=list)

    def go_on(self, jump: timedelta) -> FiringPlan:
        self.now += jump
        planned = plan(self.due, self.now)
        self.fired += planned.fire
        self.passed += [passed.slot for passed in planned.passed]
        live = self.due.live + len(planned.fire)
        self.due = replace(self.due, next_at=planned.next_at, last_at=planned.last_at, held=planned.held, live=live)
        return planned


rules: st.SearchStrategy[Rule] = st.sampled_from(
    [Cron("*/5 * * * *"), Cron("30 9 * * *", "Europe/Paris"), Cron("*/20 * * * * *"), Every(7 * SECOND), Every(HOUR)]
)
steps = st.lists(
    st.tuples(
        st.timedeltas(-2 * HOUR, 3 * HOUR) | st.timedeltas(timedelta(0), 2 * MINUTE),
        st.sampled_from(["go on", "end", "pause", "pause for a while", "resume"]),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(rules, st.sampled_from([0, 1, 5]), st.sampled_from(get_args(Overlap)), steps)
def test_every_slot_is_fired_or_passed_over_once_and_time_only_goes_on(
    rule: Rule, catch_up: int, overlap: Overlap, steps: list[tuple[timedelta, str]]
) -> None:
    start = rule.after(NINE)
    life = Life(DueSchedule(rule=rule, catch_up=catch_up, overlap=overlap, next_at=start))

    for jump, event in steps:
        life.due = replace(life.due, **happening(event, life.now))
        before = life.due
        planned = life.go_on(jump)
        assert planned.next_at > life.now
        assert planned.next_at >= before.next_at
        assert planned.next_at == before.next_at or planned.next_at == rule.after(life.now, start)
        assert before.last_at is None or (planned.last_at is not None and planned.last_at >= before.last_at)
        assert planned.last_at is None or planned.last_at < planned.next_at
        assert not (planned.fire and before.is_paused(life.now))
        assert not (planned.fire and before.live and overlap != "allow")
        assert overlap == "allow" or len(planned.fire) <= 1
        assert all(start <= slot < planned.next_at for slot in planned.fire)

    ended = life.fired + life.passed + ([life.due.held] if life.due.held else [])
    assert len(ended) == len(set(ended))
    assert life.fired == sorted(life.fired)
    if life.due.last_at is not None:
        slots = rule.latest(start - TICK, life.due.last_at, 10_000, start)
        assert set(ended) <= set(slots)
        assert len(slots) > MOST_TOLD or set(ended) == set(slots)


def happening(event: str, now: datetime) -> dict[str, Any]:
    match event:
        case "end":
            return {"live": 0}
        case "pause":
            return {"paused_at": now, "paused_until": None}
        case "pause for a while":
            return {"paused_at": now, "paused_until": now + HOUR}
        case "resume":
            return {"paused_at": None, "paused_until": None}
        case _:
            return {}


@settings(max_examples=150, deadline=None)
@given(rules, st.integers(0, 20), st.timedeltas(timedelta(0), 6 * HOUR))
def test_what_is_made_up_for_is_what_the_policy_says(rule: Rule, catch_up: int, outage: timedelta) -> None:
    start = rule.after(NINE)
    now = start + outage

    planned = plan(DueSchedule(rule=rule, catch_up=catch_up, overlap="allow", next_at=start), now)

    slots = rule.latest(start - TICK, now, 100_000, start)
    wanted = [
        slot for newer, slot in enumerate(reversed(slots)) if newer < catch_up or (newer == 0 and now - slot <= MINUTE)
    ]
    passed = [slot for slot in slots if slot not in wanted]
    assert planned.fire == tuple(reversed(wanted))
    assert planned.passed == tuple(PassedSlot(slot, "missed") for slot in passed[-MOST_TOLD:])
