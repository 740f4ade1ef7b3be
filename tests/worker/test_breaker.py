"""The breaker of a task: too many failures within too short a time, over all workers, and the task is paused."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest

from rowlock import Breaker, Cancel, Retry, RetryAfter, Rowlock, Snooze, Task
from rowlock.errors import InvalidOption
from rowlock.store import pauses
from rowlock.store.pauses import TaskFailures
from rowlock.testing import drain
from tests.engine import Engine
from tests.rows import Db, travel
from tests.waiting import until
from tests.worker.working import one, work_until, working

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
# With a lease so short, upkeep comes round within a second.
SHORT = timedelta(seconds=3)

THREE = Breaker(failures=3, window=MINUTE, pause=HOUR)
COUNTED = "select coalesce((select cardinality(failed_at) from rowlock.breakers where task = 'call'), 0)"
ENDED = "select count(*) from rowlock.history where state = %s"
PAUSED = "select exists (select from rowlock.pauses)"
WAITS = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
SET_ASIDE = "select count(*) from rowlock.jobs where waits_for = 'pause'"


class Partner:
    """What the task calls; it raises what it is told to: each of these once, the last one for ever."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []

    def answer(self) -> None:
        if self.errors:
            raise self.errors.pop(0) if len(self.errors) > 1 else self.errors[0]


@pytest.fixture
def partner() -> Partner:
    return Partner()


@pytest.fixture
def call(app: Rowlock, partner: Partner) -> Task[[], None]:
    """A task that three failures within a minute pause."""

    @app.task(name="call", breaker=THREE, retry=Retry.none())
    async def call() -> None:
        partner.answer()

    return call


@pytest.fixture
def engines(url: str) -> Iterator[list[Engine]]:
    """Two sessions of two workers."""
    both = [Engine(url), Engine(url)]
    yield both
    for engine in both:
        engine.close()


def failed(count: int = 1, *, task: str = "call", breaker: Breaker = THREE) -> TaskFailures:
    return TaskFailures(task, count, "OSError", breaker)


def events(app: Rowlock) -> list[tuple[str, str, dict[str, Any]]]:
    return [(event.kind, event.actor, dict(event.details)) for event in app.jobs.events()]


# What it does


def test_a_task_that_keeps_failing_is_paused_and_what_comes_later_is_set_aside(
    app: Rowlock, call: Task[[], None], partner: Partner, db: Db
) -> None:
    partner.errors = [ConnectionError("postgres://user:password@partner")]
    app.enqueue_many([call.bind()] * 3)
    work_until(app, lambda: one(db, PAUSED), slots=1)

    app.enqueue_many([call.bind()] * 5)
    work_until(app, lambda: one(db, SET_ASIDE) == 5)

    [pause] = app.tasks.pauses()
    assert (pause.task, pause.queue, pause.by) == ("call", None, "breaker")
    assert pause.why == "breaker: 3 failures within 1 minute, the last: ConnectionError"
    assert pause.until is not None
    assert pause.until - pause.at == HOUR
    [(kind, actor, details)] = events(app)
    assert (kind, actor) == ("paused", "breaker")
    assert (details["task"], details["why"]) == ("call", pause.why)
    assert datetime.fromisoformat(details["until"]) == pause.until
    assert one(db, ENDED, "failed") == 3


def test_what_is_claimed_already_runs_on(app: Rowlock, call: Task[[], None], partner: Partner, db: Db) -> None:
    partner.errors = [OSError()]
    app.enqueue_many([call.bind()] * 10)

    work_until(app, lambda: one(db, ENDED, "failed") == 10, slots=100)

    assert [pause.task for pause in app.tasks.pauses()] == ["call"]
    assert one(db, "select count(*) from rowlock.events") == 1
    assert one(db, COUNTED) == 0


def test_it_goes_on_by_itself_and_counts_from_the_start(
    app: Rowlock, call: Task[[], None], partner: Partner, db: Db
) -> None:
    partner.errors = [OSError()]
    app.enqueue_many([call.bind()] * 3)
    work_until(app, lambda: one(db, PAUSED), slots=1)
    partner.errors = []
    call.enqueue()
    work_until(app, lambda: one(db, SET_ASIDE) == 1)

    travel(db, 2 * HOUR)
    work_until(app, lambda: one(db, ENDED, "succeeded") == 1, lease=SHORT)

    assert app.tasks.pauses() == ()
    (kind, _, details), *_ = events(app)
    assert (kind, details["task"]) == ("pause_over", "call")


def test_somebody_who_resumes_it_ends_it_at_once_and_what_was_counted_is_forgotten(
    app: Rowlock, call: Task[[], None], partner: Partner, db: Db
) -> None:
    partner.errors = [OSError()]
    app.enqueue_many([call.bind()] * 3)
    work_until(app, lambda: one(db, PAUSED), slots=1)

    partner.errors = []
    resumed = app.tasks.resume("call", by="ada")
    call.enqueue()
    work_until(app, lambda: one(db, ENDED, "succeeded") == 1)

    assert resumed is True
    assert app.tasks.pauses() == ()
    assert one(db, "select count(*) from rowlock.breakers") == 0


def test_failures_below_an_operators_pause_are_forgotten_with_it(app: Rowlock, engines: list[Engine], db: Db) -> None:
    engine, _ = engines
    engine.run(pauses.count_failures([failed(2)]))
    app.tasks.pause("call")
    app.tasks.resume("call")

    tripped = engine.run(pauses.count_failures([failed(2)]))

    assert tripped == []
    assert one(db, COUNTED) == 2


# What counts


def test_whatever_a_handler_raises_counts(app: Rowlock, call: Task[[], None], partner: Partner, db: Db) -> None:
    partner.errors = [RuntimeError(), SystemExit()]

    app.enqueue_many([call.bind()] * 2)
    work_until(app, lambda: one(db, ENDED, "failed") == 2)

    assert one(db, COUNTED) == 2


def test_attempts_that_are_tried_again_count_and_so_do_time_outs(app: Rowlock, db: Db) -> None:
    again = Retry(attempts=2, base=timedelta(0))

    @app.task(name="call", breaker=THREE, retry=again, timeout=timedelta(milliseconds=1))
    async def call() -> None:
        await asyncio.Event().wait()

    call.enqueue()
    work_until(app, lambda: one(db, ENDED, "failed") == 1)

    assert one(db, COUNTED) == 2


def test_what_a_handler_says_on_purpose_does_not_count(
    app: Rowlock, call: Task[[], None], partner: Partner, db: Db
) -> None:
    partner.errors = [Snooze(HOUR), Cancel(), RetryAfter(HOUR), RetryAfter(HOUR)]

    app.enqueue_many([*[call.using(attempts=2).bind()] * 3, call.using(attempts=1).bind()])
    began = "select (select sum(claims) from rowlock.jobs where state = 'ready')"
    work_until(
        app, lambda: (one(db, began), one(db, ENDED, "cancelled"), one(db, ENDED, "failed")) == (2, 1, 1), slots=1
    )

    assert one(db, COUNTED) == 0


def test_a_task_without_a_breaker_is_never_counted(app: Rowlock, db: Db) -> None:
    @app.task(name="plain", retry=Retry.none())
    async def plain() -> None:
        raise OSError

    app.enqueue_many([plain.bind()] * 50)
    work_until(app, lambda: one(db, ENDED, "failed") == 50)

    assert one(db, "select count(*) from rowlock.breakers") == 0
    assert app.tasks.pauses() == ()


def test_failures_that_lie_further_apart_do_not_count_together(engines: list[Engine], db: Db) -> None:
    engine, _ = engines
    slow = Breaker(failures=3, window=HOUR, pause=HOUR)

    tripped = []
    for hours in (0, 0.9, 1.1, 1.8):
        travel(db, hours * HOUR)
        tripped.append(engine.run(pauses.count_failures([failed(breaker=slow)])))

    assert tripped == [[], [], [], ["call"]]


def test_no_more_is_kept_than_it_takes(engines: list[Engine], db: Db) -> None:
    engine, _ = engines
    for hours in range(5):
        travel(db, hours * HOUR)
        engine.run(pauses.count_failures([failed()]))

    assert one(db, COUNTED) == 3


def test_each_task_is_counted_by_itself(app: Rowlock, engines: list[Engine]) -> None:
    engine, _ = engines
    touchy = Breaker(failures=1)

    first = engine.run(
        pauses.count_failures([failed(2), failed(2, task="other"), failed(task="touchy", breaker=touchy)])
    )
    second = engine.run(pauses.count_failures([failed(5, task="other"), failed(task="third")]))

    assert (first, second) == (["touchy"], ["other"])
    assert {pause.task for pause in app.tasks.pauses()} == {"touchy", "other"}


# A fleet


def test_workers_count_together(app: Rowlock, call: Task[[], None], partner: Partner, url: str, db: Db) -> None:
    partner.errors = [OSError()]
    with Rowlock(url) as other:

        @other.task(name="call", breaker=THREE, retry=Retry.none(), queue="other")
        async def elsewhere() -> None:
            raise OSError

        with working(app, slots=1), working(other, queues="other", slots=1):
            for n, task in enumerate([call, elsewhere, call], start=1):
                assert app.tasks.pauses() == ()
                task.enqueue()
                until(lambda: one(db, ENDED, "failed") == n)  # noqa: B023  it is called in here

            [pause] = until(app.tasks.pauses)

    assert (pause.task, pause.by) == ("call", "breaker")


def test_two_that_count_at_once_trip_it_once(app: Rowlock, engines: list[Engine], db: Db) -> None:
    one_worker, another = engines
    one_worker.run(pauses.count_failures([failed(2)]))

    with ThreadPoolExecutor() as threads:
        with one_worker.connection.transaction():
            first = one_worker.run(pauses.count_failures([failed()]))
            second = threads.submit(another.run, pauses.count_failures([failed()]))
            until(lambda: one(db, WAITS) == 1, what="a wait for the row")
        tripped = [first, second.result()]

    assert tripped == [["call"], []]
    assert [pause.task for pause in app.tasks.pauses()] == ["call"]
    assert len(events(app)) == 1


def test_one_that_waits_goes_on_from_what_the_other_has_counted(app: Rowlock, engines: list[Engine], db: Db) -> None:
    one_worker, another = engines

    with ThreadPoolExecutor() as threads:
        with one_worker.connection.transaction():
            one_worker.run(pauses.count_failures([failed(2)]))
            second = threads.submit(another.run, pauses.count_failures([failed()]))
            until(lambda: one(db, WAITS) == 1, what="a wait for the row")

        assert second.result() == ["call"]


def test_a_count_and_a_resume_do_not_hold_each_other_up(app: Rowlock, engines: list[Engine], db: Db) -> None:
    engine, _ = engines
    engine.run(pauses.count_failures([failed(2)]))
    app.tasks.pause("call", duration=SECOND)
    travel(db, 2 * SECOND)  # it is over, and its row is still there
    engine.connection.execute("set deadlock_timeout = '1ms'")  # it would be the one to fail: a resume is tried again

    with ThreadPoolExecutor() as threads:
        with engine.connection.transaction():
            engine.connection.execute("select from rowlock.breakers for update")  # as a count begins
            resumed = threads.submit(app.tasks.resume, "call")
            until(lambda: one(db, WAITS) == 1, what="a wait for the count")
            tripped = engine.run(pauses.count_failures([failed()]))
        was_paused = resumed.result()

    assert (tripped, was_paused) == (["call"], True)
    assert app.tasks.pauses() == ()


# Beside operators


@pytest.mark.parametrize("duration", [None, MINUTE, 3 * HOUR])
def test_an_operators_pause_is_neither_shortened_nor_replaced(
    app: Rowlock, engines: list[Engine], db: Db, duration: timedelta | None
) -> None:
    engine, _ = engines
    before = app.tasks.pause("call", duration=duration, why="mine", by="ada")

    tripped = engine.run(pauses.count_failures([failed(3)])) + engine.run(pauses.count_failures([failed(2)]))

    assert tripped == []
    assert app.tasks.pauses() == (before,)
    assert one(db, "select (actor, reason)::text from rowlock.pauses") == "(ada,mine)"
    assert one(db, COUNTED) == 0


def test_a_pause_that_is_over_and_still_there_gives_way(app: Rowlock, engines: list[Engine], db: Db) -> None:
    engine, _ = engines
    app.tasks.pause("call", duration=SECOND, by="ada")
    travel(db, MINUTE)

    tripped = engine.run(pauses.count_failures([failed(3)]))

    assert tripped == ["call"]
    assert [pause.by for pause in app.tasks.pauses()] == ["breaker"]


def test_a_pause_of_a_queue_of_the_same_name_is_another_matter(app: Rowlock, engines: list[Engine]) -> None:
    engine, _ = engines
    app.queues.pause("call", by="ada")

    tripped = engine.run(pauses.count_failures([failed(3)]))

    assert tripped == ["call"]
    assert [(pause.queue, pause.by) for pause in (*app.queues.pauses(), *app.tasks.pauses())] == [
        ("call", "ada"),
        (None, "breaker"),
    ]


# What becomes of the counts


def test_failures_of_a_day_ago_are_forgotten(engines: list[Engine], db: Db) -> None:
    engine, _ = engines
    engine.run(
        pauses.count_failures([failed(task="old"), failed(task="older, and anew"), failed(3, task="cleared away")])
    )
    travel(db, timedelta(hours=25))
    engine.run(pauses.count_failures([failed(task="older, and anew")]))

    gone = engine.run(pauses.forget_failures(age=timedelta(days=1)))

    assert sorted(gone) == ["cleared away", "old"]


def test_a_count_that_cannot_be_written_is_logged_and_the_work_goes_on(
    app: Rowlock, call: Task[[], None], partner: Partner, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    partner.errors = [OSError()]
    db.execute("alter table rowlock.breakers rename to broken")

    app.enqueue_many([call.bind()] * 5)
    with caplog.at_level(logging.WARNING, "rowlock.worker"):
        work_until(app, lambda: one(db, ENDED, "failed") == 5, slots=1)

    assert "failures were not counted" in caplog.text
    assert app.tasks.pauses() == ()


def test_a_drain_counts_as_a_worker_does(app: Rowlock, call: Task[[], None], partner: Partner) -> None:
    partner.errors = [OSError()]
    app.enqueue_many([call.bind()] * 5)

    drained = drain(app)

    assert (drained.failed, drained.blocked) == (3, 2)
    assert [pause.by for pause in app.tasks.pauses()] == ["breaker"]


# What may be asked


def test_what_it_says_of_itself() -> None:
    assert Breaker() == Breaker(failures=20, window=MINUTE, pause=5 * MINUTE)
    assert Breaker(failures=1, window=90 * MINUTE).why("E") == "breaker: 1 failure within 90 minutes, the last: E"
    assert "within 2 days," in Breaker(window=timedelta(days=2)).why("E")
    assert "within 1.5 seconds," in Breaker(window=timedelta(seconds=1.5)).why("E")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"failures": 0}, "use 1 (the first one) to 1,000"),
        ({"failures": 1001}, "out of range"),
        ({"failures": 2.0}, "must be an int, not float"),
        ({"failures": True}, "must be an int, not bool"),
        ({"window": timedelta(0)}, "more than zero"),
        ({"window": 60}, "write timedelta(minutes=…)"),
        ({"pause": -MINUTE}, "more than zero"),
        ({"pause": timedelta.max}, "up to 365 days"),
    ],
    ids=str,
)
def test_a_breaker_that_makes_no_sense_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        Breaker(**options)

    assert says in str(refused.value)


def test_a_breaker_that_is_none_is_refused(app: Rowlock) -> None:
    with pytest.raises(InvalidOption, match="write breaker=Breaker"):
        app.task(name="t", breaker=20)(len)  # type: ignore[call-overload]
