"""Rates: what workers did, step by step, on an even axis, and from so many rows at most."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from rowlock import Rowlock, RowlockError
from rowlock.errors import InvalidOption
from rowlock.model.stats.histogram import bucket, pack
from rowlock.store.stats import series as series_store
from rowlock.testing import travel
from rowlock.types import Point, Series
from tests.worker.working import Db, work_off

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
QUARTER = timedelta(minutes=15)


def at_half_past(app: Rowlock) -> timedelta:
    """How far to travel to half past a minute, a quarter past an hour."""
    now = app.stats().at
    return now.replace(minute=15, second=30, microsecond=0) - now


@pytest.fixture
def now(app: Rowlock) -> Iterator[datetime]:
    """A quarter past an hour and thirty seconds: it goes on, but for less than a test would notice."""
    with travel(app, at_half_past(app)):
        yield app.rates().at.replace(second=0, microsecond=0)


def count(db: Db, at: datetime, *, queue: str = "q", task: str = "t", took: float = 1.0, waited: float = 1.0) -> None:
    """A worker has claimed four jobs in a minute; two have succeeded, one has failed, and one is to be retried."""
    histograms = [pack([0] * bucket(seconds) + [number]) for seconds, number in ((took, 4), (waited, 4))]
    db.execute(
        "insert into rowlock.minutes values (%s, %s, %s, %s, 4, 2, 1, 0, 1, %s, %s, %s, %s, %s, %s)",
        [at, uuid4(), queue, task, 4 * took, took, histograms[0], 4 * waited, waited, histograms[1]],
    )


def claimed(series: Series) -> dict[datetime, int]:
    """Where anything was claimed."""
    return {point.at: point.claimed for point in series.points if point.claimed}


def test_every_step_has_a_point_and_the_last_one_is_now(app: Rowlock, now: datetime) -> None:
    series = app.rates()

    assert (series.step, len(series.points), series.cut) == (MINUTE, 60, False)
    assert [point.at for point in series.points] == [now - number * MINUTE for number in reversed(range(60))]
    assert series.points[0] == Point(now - 59 * MINUTE, whole=True)


def test_what_workers_did_stands_where_they_did_it(app: Rowlock, db: Db, now: datetime) -> None:
    count(db, now - 10 * MINUTE)
    count(db, now - 10 * MINUTE, queue="other", took=9.0, waited=90.0)
    count(db, now - 9 * MINUTE)
    count(db, now - 60 * MINUTE)

    series = app.rates()

    assert claimed(series) == {now - 10 * MINUTE: 8, now - 9 * MINUTE: 4}
    point = next(point for point in series.points if point.at == now - 10 * MINUTE)
    assert (point.succeeded, point.failed, point.cancelled, point.retried) == (4, 2, 0, 2)
    assert point.durations is not None
    assert point.waits is not None
    assert (point.durations.count, point.durations.mean, point.durations.max) == (8, timedelta(seconds=5), 9 * SECOND)
    assert (point.waits.count, point.waits.max) == (8, timedelta(seconds=90))
    assert point.waits.p50 < 2 * SECOND < 60 * SECOND < point.waits.p95 <= 90 * SECOND


@pytest.mark.parametrize(
    ("asked", "expected"),
    [({"queue": "mail"}, 8), ({"task": "send"}, 8), ({"queue": "mail", "task": "send"}, 4), ({"queue": "none"}, 0)],
)
def test_a_series_is_of_a_queue_or_of_a_task_where_one_is_named(
    app: Rowlock, db: Db, now: datetime, asked: dict[str, Any], expected: int
) -> None:
    for queue, task in (("mail", "send"), ("mail", "bounce"), ("slow", "send"), ("slow", "report")):
        count(db, now - 5 * MINUTE, queue=queue, task=task)

    series = app.rates(**asked)

    assert sum(claimed(series).values()) == expected
    assert len(series.points) == 60


def test_longer_steps_begin_where_the_clock_has_a_round_figure(app: Rowlock, db: Db, now: datetime) -> None:
    count(db, now - QUARTER)
    count(db, now - QUARTER - MINUTE)

    series = app.rates(span=DAY)

    hour = now - QUARTER
    assert (series.step, len(series.points)) == (timedelta(minutes=10), 144)
    assert series.points[-1].at == hour + timedelta(minutes=10)
    assert claimed(series) == {hour: 4, hour - timedelta(minutes=10): 4}


@pytest.mark.parametrize(
    ("span", "step", "expected"),
    [
        (HOUR, None, (MINUTE, 60)),
        (2 * HOUR, None, (MINUTE, 120)),
        (2 * HOUR + MINUTE, None, (timedelta(minutes=5), 25)),
        (12 * HOUR, None, (timedelta(minutes=5), 144)),
        (DAY, None, (timedelta(minutes=10), 144)),
        (DAY, DAY, (DAY, 1)),
        (timedelta(seconds=90), None, (MINUTE, 2)),
        (HOUR, timedelta(minutes=7), (timedelta(minutes=7), 9)),
    ],
)
def test_there_are_as_many_steps_as_cover_the_span(
    app: Rowlock, span: timedelta, step: timedelta | None, expected: tuple[timedelta, int]
) -> None:
    series = app.rates(span=span, step=step)

    assert (series.step, len(series.points)) == expected


@pytest.mark.parametrize(("seconds", "not_whole"), [(5, 2), (30, 1)])
def test_a_step_is_whole_when_workers_have_had_the_time_to_write_it(app: Rowlock, seconds: int, not_whole: int) -> None:
    with travel(app, at_half_past(app) + timedelta(seconds=seconds - 30)):
        series = app.rates()

    assert [point.whole for point in series.points] == [True] * (60 - not_whole) + [False] * not_whole


def test_of_a_large_fleet_only_the_newest_minutes_are_looked_at_and_it_says_so(
    app: Rowlock, db: Db, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        for task in ("a", "b"):
            count(db, now - number * MINUTE, task=task)
    monkeypatch.setattr(series_store, "_MOST_ROWS", 7)

    series = app.rates(task="a")

    # Three minutes and a half: what is there only in part is left out.
    assert series.cut
    assert claimed(series) == {now: 4, now - MINUTE: 4, now - 2 * MINUTE: 4}
    assert [point.at for point in series.points] == [now - 2 * MINUTE, now - MINUTE, now]


def test_the_work_of_a_worker_shows(app: Rowlock, db: Db) -> None:
    @app.task(name="works", queue="mail")
    async def works() -> None: ...

    app.enqueue_many([works.bind(), works.bind(), works.bind()])
    db.execute("update rowlock.jobs set run_at = run_at - interval '1 minute'")
    work_off(app, db, queues="mail")

    points = [point for point in app.rates(queue="mail", task="works").points if point.claimed or point.succeeded]

    assert sum(point.succeeded for point in points) == 3
    waits = [point.waits for point in points if point.waits is not None]
    assert sum(wait.count for wait in waits) == 3
    assert all(wait.p50 >= MINUTE / 2**0.5 for wait in waits)


def test_it_can_be_written_as_json(app: Rowlock, db: Db, now: datetime) -> None:
    count(db, now - 5 * MINUTE)

    series = app.rates(span=timedelta(minutes=10))
    again = json.loads(json.dumps(series.to_dict()))

    assert again.keys() == {"at", "step", "points", "cut"}
    assert again["step"] == 60.0
    assert again["points"][4]["at"] == (now - 5 * MINUTE).isoformat()
    assert again["points"][4]["waits"]["mean"] == 1.0
    assert again["points"][5]["waits"] is None


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"span": 3600}, "is not a timedelta"),
    ({"span": timedelta(0)}, "a minute to a day"),
    ({"span": DAY + MINUTE}, "a minute to a day"),
    ({"step": 5}, "is not a timedelta"),
    ({"step": timedelta(seconds=30)}, "whole minutes"),
    ({"step": timedelta(seconds=90)}, "whole minutes"),
    ({"step": 2 * HOUR}, "from one to the span"),
    ({"step": -MINUTE}, "from one to the span"),
    ({"queue": ""}, "queue"),
    ({"task": "t\x00"}, "task"),
    ({"queue": 7}, "queue"),
]


@pytest.mark.parametrize(("asked", "says"), WRONG, ids=str)
def test_what_makes_no_sense_is_refused_before_anything_is_asked(asked: dict[str, Any], says: str) -> None:
    nowhere = Rowlock("postgresql://nobody@127.0.0.1:1/none")

    with pytest.raises(InvalidOption, match=says):
        nowhere.rates(**asked)


def test_on_an_event_loop_it_asks_for_its_twin(app: Rowlock) -> None:
    async def look() -> Series:
        with pytest.raises(RowlockError, match="arates"):
            app.rates()
        return await app.arates(span=timedelta(minutes=5))

    series = asyncio.run(look())

    assert len(series.points) == 5
    assert series.at.tzinfo == UTC
