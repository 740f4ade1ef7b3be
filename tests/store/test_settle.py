"""Settle: who may end an attempt, and what becomes of its job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock.model.outcome import Blocked, Cancelled, Ended, Failed, HandedBack, Retried, Returned, Snoozed, Succeeded
from rowlock.store import jobs, settle
from tests.engine import Engine

Db = psycopg.Connection[TupleRow]
FAILURE = json.dumps({"type": "ValueError", "message": "no", "traceback": "…"})


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = Engine(url)
    yield engine
    engine.close()


def test_an_ended_job_leaves_the_hot_table_for_history(engine: Engine, db: Db) -> None:
    [job_id] = engine.enqueue()
    [row] = engine.claim()

    assert engine.settle(row, outcome=Succeeded('{"n": 1e22}')) == [row.token]

    assert db.execute("select count(*) from rowlock.jobs").fetchone() == (0,)
    ended = db.execute("select id::text, state, result::text, claims, failures from rowlock.history").fetchall()
    assert ended == [(job_id, "succeeded", '{"n": 1e22}', 1, 0)]


def test_a_stale_attempt_settles_nothing(engine: Engine, db: Db) -> None:
    engine.enqueue()
    [stale] = engine.claim()
    engine.give_back(stale, outcome=HandedBack())
    [current] = engine.claim()

    assert engine.settle(stale) == []
    assert engine.settle(current) == [current.token]


def test_a_stale_attempt_settles_nothing_in_one_batch_with_other_tokens(engine: Engine, db: Db) -> None:
    """Two arrays that are matched apart would pair the stale id with the other job's fresh token."""
    engine.enqueue(2)
    stale, other = sorted(engine.claim())
    engine.give_back(stale, outcome=HandedBack())
    [current] = engine.claim()
    assert current.id == stale.id

    accepted = engine.settle(stale, other)

    assert accepted == [other.token]
    assert db.execute("select id::text, token::text from rowlock.jobs").fetchall() == [(current.id, current.token)]


def test_two_attempts_of_one_job_in_one_batch_count_once(engine: Engine, db: Db) -> None:
    engine.enqueue()
    [stale] = engine.claim()
    engine.give_back(stale, outcome=HandedBack())
    [current] = engine.claim()

    assert engine.settle(stale, current) == [current.token]
    assert db.execute("select count(*) from rowlock.history").fetchone() == (1,)


def test_a_row_that_someone_has_locked_does_not_hold_up_the_others(engine: Engine, url: str) -> None:
    engine.enqueue(100)
    rows = engine.claim()
    with psycopg.connect(url) as holder:
        holder.execute("select from rowlock.jobs where id = %s for update", [rows[0].id])

        accepted = engine.settle(*rows)

        assert sorted(accepted) == sorted(row.token for row in rows[1:])
        assert engine.run(jobs.held(rows)) == [(rows[0].token, False)]
    assert engine.settle(rows[0]) == [rows[0].token]


def test_settlers_lock_in_one_order(engine: Engine) -> None:
    engine.enqueue(50)
    rows = engine.claim()

    query = settle.settle_jobs([(row, Succeeded(None), None) for row in reversed(rows)])

    ids = query.params["ids"] or ""
    assert ids == "{" + ",".join(sorted(row.id for row in rows)) + "}"


def test_a_job_without_history_leaves_no_trace(engine: Engine, db: Db) -> None:
    engine.enqueue()
    [row] = engine.claim()

    engine.run(settle.settle_jobs([(row, Succeeded(None), None)]))

    counts = db.execute("select (select count(*) from rowlock.jobs), (select count(*) from rowlock.history)")
    assert counts.fetchone() == (0, 0)


def test_a_job_is_kept_as_long_as_asked(engine: Engine, db: Db) -> None:
    engine.enqueue()
    [row] = engine.claim()

    engine.run(settle.settle_jobs([(row, Failed(FAILURE, "exhausted"), timedelta(days=30))]))

    kept = db.execute("select expires_on - (rowlock.now() at time zone 'UTC')::date from rowlock.history").fetchone()
    assert kept == (30,)


def test_a_failure_is_kept_with_its_circumstances(engine: Engine, db: Db) -> None:
    engine.enqueue()
    [row] = engine.claim()

    engine.settle(row, outcome=Failed(FAILURE, "exhausted"))

    [(reason, failures, errors)] = db.execute("select reason, failures, errors from rowlock.history").fetchall()
    assert (reason, failures) == ("exhausted", 1)
    assert errors[0].keys() == {"type", "message", "traceback", "attempt", "worker", "started_at", "ended_at"}
    assert errors[0]["worker"] == engine.worker


def test_the_last_ten_errors_are_kept(engine: Engine, db: Db) -> None:
    engine.enqueue()
    for n in range(13):
        [row] = engine.claim()
        engine.give_back(row, outcome=Retried(json.dumps({"type": "E", "message": str(n)}), timedelta(0)))

    [(failures, errors)] = db.execute("select failures, errors from rowlock.jobs").fetchall()

    assert failures == 13
    assert [error["message"] for error in errors] == [str(n) for n in range(3, 13)]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Retried(FAILURE, timedelta(hours=1)), ("ready", 1, "later")),
        (Snoozed(timedelta(hours=1)), ("ready", 0, "later")),
        (HandedBack(), ("ready", 0, "at once")),
        (Blocked("code", "unknown task"), ("waiting", 0, "at once")),
    ],
)
def test_only_a_failure_spends_an_attempt(
    engine: Engine, db: Db, outcome: Returned, expected: tuple[str, int, str]
) -> None:
    engine.enqueue()
    [row] = engine.claim()

    engine.give_back(row, outcome=outcome)

    when = "case when run_at > rowlock.now() then 'later' else 'at once' end"
    facts = db.execute(f"select state, failures, {when}, token, claims, crashes from rowlock.jobs".encode())
    assert facts.fetchone() == (*expected, None, 1, 0)


def test_many_attempts_return_each_with_its_own_facts(engine: Engine, db: Db) -> None:
    engine.enqueue(3)
    a, b, c = sorted(engine.claim())

    engine.run(
        settle.return_jobs(
            [(c, Snoozed(timedelta(hours=3))), (a, Retried(FAILURE, timedelta(hours=1))), (b, Blocked("code", "b"))]
        )
    )

    hours = "round(extract(epoch from run_at - rowlock.now()) / 3600)"
    facts = db.execute(f"select state, failures, reason, {hours} from rowlock.jobs order by id".encode())
    assert facts.fetchall() == [("ready", 1, None, 1), ("waiting", 0, "b", 0), ("ready", 0, None, 3)]


def test_a_stale_attempt_returns_nothing(engine: Engine, db: Db) -> None:
    engine.enqueue()
    [stale] = engine.claim()
    engine.give_back(stale, outcome=HandedBack())
    [current] = engine.claim()

    assert engine.give_back(stale, outcome=Retried(FAILURE, timedelta(0))) == []
    assert db.execute("select token::text, failures from rowlock.jobs").fetchone() == (current.token, 0)


def test_two_attempts_of_one_job_in_one_return_end_as_the_current_one_says(engine: Engine, db: Db) -> None:
    engine.enqueue(3)
    rows = sorted(engine.claim())
    stale = [row._replace(token=str(UUID(int=number))) for row in rows for number in (0, 2**128 - 1)]

    accepted = engine.run(
        settle.return_jobs(
            [
                *((row, Retried(FAILURE, timedelta(hours=9))) for row in stale),
                *((row, Snoozed(timedelta(hours=hours))) for hours, row in enumerate(rows)),
            ]
        )
    )

    assert sorted(accepted) == sorted(row.token for row in rows)
    hours = "round(extract(epoch from run_at - rowlock.now()) / 3600)"
    facts = db.execute(f"select state, failures, {hours} from rowlock.jobs order by id".encode())
    assert facts.fetchall() == [("ready", 0, 0), ("ready", 0, 1), ("ready", 0, 2)]


def test_a_missing_partition_is_said_so_and_nothing_is_settled(engine: Engine, db: Db) -> None:
    engine.enqueue()
    [row] = engine.claim()

    with pytest.raises(psycopg.errors.CheckViolation) as caught:
        engine.run(settle.settle_jobs([(row, Cancelled("asked"), timedelta(days=3650))]))

    assert caught.value.diag.constraint_name is None
    assert engine.settle(row) == [row.token]


# Jobs that somebody has asked to cancel


def mark(db: Db) -> None:
    db.execute("update rowlock.jobs set cancel_at = rowlock.now()")


@pytest.mark.parametrize("outcome", [Succeeded("1"), Failed(FAILURE, "exhausted"), Cancelled("expired")])
def test_a_marked_job_ends_as_cancelled_whatever_its_attempt_came_to(engine: Engine, db: Db, outcome: Ended) -> None:
    engine.enqueue()
    [row] = engine.claim()
    mark(db)

    assert engine.settle(row, outcome=outcome) == [row.token]

    ended = db.execute("select state, reason, result from rowlock.history").fetchall()
    assert ended == [("cancelled", "asked", None)]
    assert db.execute("select count(*) from rowlock.jobs").fetchone() == (0,)


def test_a_marked_job_is_kept_as_a_cancelled_one_is(engine: Engine, db: Db) -> None:
    engine.enqueue(2)
    plain, of_a_queue = sorted(engine.claim())
    mark(db)
    db.execute("update rowlock.jobs set queue = 'short' where id = %s", [of_a_queue.id])
    db.execute("insert into rowlock.queues (name, keep_cancelled) values ('short', '2 days')")

    untraced = [(row, Succeeded(None), None) for row in (plain, of_a_queue)]
    engine.run(settle.settle_jobs(untraced, cancelled=timedelta(days=5)))

    kept = "select expires_on - (rowlock.now() at time zone 'UTC')::date from rowlock.history order by id"
    assert db.execute(kept.encode()).fetchall() == [(5,), (2,)]


@pytest.mark.parametrize(
    "outcome",
    [Retried(FAILURE, timedelta(0)), Snoozed(timedelta(0)), HandedBack(), Blocked("code", "unknown task")],
)
def test_a_marked_job_does_not_come_back(engine: Engine, db: Db, outcome: Returned) -> None:
    engine.enqueue(2)
    marked, other = sorted(engine.claim())
    db.execute("update rowlock.jobs set cancel_at = rowlock.now() where id = %s", [marked.id])

    assert engine.give_back(marked, other, outcome=outcome) == [other.token]

    assert engine.run(jobs.held([marked, other])) == [(marked.token, True)]
    assert engine.run(jobs.cancelling(worker=engine.worker)) == [marked.token]
