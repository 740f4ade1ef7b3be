"""The drawing of a workflow's time: where things stand, and what is cut short."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rowlock.dashboard.drawings.gantt import TimeAxis, bar_parts, work_of
from rowlock.model.workflow.step import StepKind, StepState
from rowlock.model.workflow.timeline import TimelineStep

MORNING = datetime(2026, 3, 1, 8, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return MORNING + timedelta(seconds=seconds)


def step(
    kind: StepKind = "step", state: StepState = "done", *, begin: float = 0, end: float | None = 1, tries: int = 0
) -> TimelineStep:
    ended = None if end is None else at(end)
    return TimelineStep("k", "k", kind, state, tries, None, None, at(begin), ended, 1, None, None, None, None)


def test_where_work_is_most_of_it_time_is_drawn_as_it_went() -> None:
    scale = TimeAxis(at(0), at(10), [(at(0), at(4)), (at(5), at(10))])

    assert scale.cuts == ()
    assert [scale.x(at(second)) for second in (-1, 0, 2.5, 10, 11)] == [0, 0, 25, 100, 100]
    assert [tick.words for tick in scale.ticks] == ["0", "2 s", "4 s", "6 s", "8 s"]


def test_marks_of_an_axis_are_all_different() -> None:
    scale = TimeAxis(at(0), at(150), [(at(0), at(150))])

    assert [tick.words for tick in scale.ticks] == ["0", "30 s", "1 min", "1 min 30 s", "2 min"]


def test_a_long_wait_is_cut_so_that_the_work_can_be_seen() -> None:
    week = 7 * 86_400
    scale = TimeAxis(at(0), at(week + 2), [(at(0), at(1)), (at(week + 1), at(week + 2))])

    assert [cut.words for cut in scale.cuts] == ["7 d"]
    assert scale.x(at(1)) == pytest.approx(30)
    assert scale.x(at(week + 1)) == pytest.approx(70)
    assert scale.x(at(week + 2)) == 100


def test_places_follow_the_order_of_time_whatever_is_cut() -> None:
    work = [(at(begin), at(begin + 0.1)) for begin in (0, 50, 51, 3_000, 90_000)]
    scale = TimeAxis(at(0), at(100_000), work)

    places = [scale.x(at(second)) for second in range(0, 100_001, 500)]

    assert places == sorted(places)
    assert places[0] == 0
    assert places[-1] == pytest.approx(100)


def test_small_gaps_between_many_steps_are_left_alone() -> None:
    work = [(at(number / 10), at(number / 10 + 0.001)) for number in range(1000)]
    scale = TimeAxis(at(0), at(86_400), work)

    assert [cut.words for cut in scale.cuts] == ["24 h"]
    assert "0" in [tick.words for tick in scale.ticks]


@pytest.mark.parametrize("work", [[], [(at(0), at(0))], [(at(5), at(5))]])
def test_nothing_but_waits_is_drawn_as_it_went(work: list[tuple[datetime, datetime]]) -> None:
    assert TimeAxis(at(0), at(10), work).cuts == ()


def test_an_instant_has_an_axis_too() -> None:
    scale = TimeAxis(at(0), at(0))

    assert scale.x(at(0)) == 0


def test_failed_tries_are_parts_of_a_bar() -> None:
    scale = TimeAxis(at(0), at(10))

    done = bar_parts(step(end=4, tries=3), scale, at(10))
    failed = bar_parts(step(state="failed", end=4, tries=2), scale, at(10))

    assert [(piece.look, piece.x, piece.width) for piece in done] == [
        ("tried", 0, 10),
        ("tried", 10, 10),
        ("tried", 20, 10),
        ("done", 30, 10),
    ]
    assert [piece.look for piece in failed] == ["tried", "failed"]


@pytest.mark.parametrize(
    ("one", "look"),
    [
        (step("sleep"), "sleep"),
        (step("signal", "open", end=None), "wait"),
        (step("signal", "failed"), "over"),
        (step("child"), "child"),
        (step("undo"), "undo"),
        (step("now", end=0), "mark"),
        (step("step", "failed"), "failed"),
        (step("transaction"), "done"),
    ],
)
def test_each_kind_has_its_look(one: TimelineStep, look: str) -> None:
    assert [piece.look for piece in bar_parts(one, TimeAxis(at(0), at(10)), at(10))] == [look]


def test_what_is_open_goes_on_until_now() -> None:
    [piece] = bar_parts(step("signal", "open", begin=5, end=None), TimeAxis(at(0), at(10)), at(10))

    assert (piece.x, piece.width) == (50, 50)


def test_waits_are_no_work() -> None:
    steps = [step(), step("sleep"), step("signal"), step("child", begin=2, end=None), step("any")]

    assert work_of(steps, at(9)) == [(at(0), at(1)), (at(2), at(9))]
