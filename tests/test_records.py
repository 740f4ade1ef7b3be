"""Looking a job up: `app.jobs.get` and `job.record()`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from rowlock import Retry, Rowlock, current_job
from rowlock.errors import InvalidOption, JobNotFound
from rowlock.model.outcome import Cancelled
from rowlock.store.query import statement
from rowlock.types import JobRecord
from tests.engine import Engine
from tests.worker.working import Db, one, work_off


@dataclass(frozen=True)
class Parcel:
    """Something with a type of its own."""

    id: UUID
    weights: tuple[float, ...]


def test_a_job_can_be_looked_up_by_its_id(app: Rowlock, db: Db) -> None:
    @app.task(name="pack", aliases=["wrap"])
    def pack() -> Parcel:
        return Parcel(UUID(int=1), (1.5,))

    job = pack.using(queue="default").enqueue()
    db.execute("update rowlock.jobs set task = 'wrap'")

    found = [app.jobs.get(job.id), app.jobs.get(str(job.id).upper()), asyncio.run(app.jobs.aget(job.id))]
    work_off(app, db)

    assert found == [job, job, job]
    assert {(one.task, one.queue) for one in found} == {("wrap", "default")}
    assert {one.result() for one in found} == {Parcel(UUID(int=1), (1.5,))}


def test_a_job_that_does_not_exist_is_not_found(app: Rowlock) -> None:
    nobody = uuid4()

    with pytest.raises(JobNotFound, match=str(nobody)) as caught:
        app.jobs.get(nobody)

    assert caught.value.job == nobody


def test_a_job_of_a_task_that_nobody_could_declare_can_be_looked_up(app: Rowlock, db: Db) -> None:
    odd = "a task\nof two lines"
    job_id = one(db, "select rowlock.enqueue(%s)", odd)

    job = app.jobs.get(job_id)

    assert (job.id, job.task) == (job_id, odd)
    assert job.record().task == odd


def test_what_is_no_id_is_refused_before_any_io() -> None:
    app = Rowlock("postgresql://nobody@nowhere.invalid/none")

    with pytest.raises(InvalidOption, match="UUID"):
        app.jobs.get("yesterday's job")


def test_a_record_shows_a_live_job(app: Rowlock, db: Db) -> None:
    tomorrow = datetime(2100, 1, 1, tzinfo=UTC)
    job = (
        app.call("t", x=[1, {"y": None}])
        .task.using(key="k", tags=["a", "b"], priority=3, run_at=tomorrow, attempts=7, expires=timedelta(days=1))
        .enqueue(x=[1, {"y": None}])
    )

    record = job.record()

    assert isinstance(record, JobRecord)
    assert (record.id, record.task, record.queue, record.state, record.priority) == (job.id, "t", "default", "ready", 3)
    assert (record.failures, record.crashes, record.claims, record.attempts) == (0, 0, 0, 7)
    assert (record.run_at, record.started_at, record.ended_at) == (tomorrow, None, None)
    assert record.created_at == one(db, "select created_at from rowlock.jobs")
    assert record.expires_at == tomorrow + timedelta(days=1)
    assert (record.key, record.tags, record.args) == ("k", ("a", "b"), {"x": [1, {"y": None}]})
    assert (record.result, record.errors, record.progress, record.ended) == (None, (), None, False)


def test_a_record_shows_an_ended_job_and_what_went_wrong_before(app: Rowlock, db: Db) -> None:
    @app.task(name="second time lucky", retry=Retry(attempts=5, base=timedelta(0), cap=timedelta(0)))
    async def lucky() -> dict[str, int]:
        if current_job().attempt < 2:
            raise ValueError("not yet")
        return {"attempt": 2}

    job = lucky.enqueue()
    work_off(app, db)

    record = asyncio.run(job.arecord())

    assert (record.state, record.ended, record.result) == ("succeeded", True, {"attempt": 2})
    assert (record.failures, record.claims) == (1, 2)
    (error,) = record.errors
    assert (error.type, error.message, error.attempt, error.worker) == ("ValueError", "not yet", 1, record.worker)
    assert "not yet" in error.traceback
    assert error.started_at is not None
    assert error.ended_at is not None
    assert record.ended_at is not None
    assert error.started_at <= error.ended_at <= record.ended_at


def test_a_record_as_a_dict_is_json(app: Rowlock, db: Db) -> None:
    @app.task(name="sink", retry=Retry(attempts=1))
    def sink(x: int) -> None:
        current_job().progress(0.5, "half way")
        raise LookupError

    job = sink.enqueue(1)
    work_off(app, db)

    record = job.record()
    shown = record.to_dict()

    assert (shown["id"], shown["state"], shown["args"]) == (str(job.id), "failed", {"x": 1})
    assert shown["errors"][0]["type"] == "LookupError"
    assert shown["errors"][0]["worker"] == str(record.worker)
    assert datetime.fromisoformat(shown["ended_at"]) == record.ended_at
    assert record.progress is not None
    assert shown["progress"] == {"share": 0.5, "note": "half way", "at": record.progress.at.isoformat()}


def test_a_record_shows_what_python_cannot_hold(app: Rowlock, db: Db) -> None:
    job_id = one(
        db, "select rowlock.enqueue('t', ('{\"n\": ' || repeat('9', 5000) || '}')::json, run_at => 'infinity')"
    )

    record = app.jobs.get(job_id).record()

    assert record.args == '{"n": ' + "9" * 5000 + "}"
    assert record.run_at.year == 9999


# How the database is asked


def test_a_look_at_a_live_job_leaves_history_alone(app: Rowlock, url: str, db: Db) -> None:
    engine = Engine(url)
    live, *ended = engine.enqueue(3)
    done = [row for row in engine.claim() if row.id in ended]
    engine.settle(*done, outcome=Cancelled("asked"))

    plan = explained(engine, "job_show", id=live)

    assert "never executed" in plan
    assert not [line for line in plan.splitlines() if "history" in line and "never executed" not in line]
    engine.close()


def explained(engine: Engine, name: str, **params: str) -> str:
    rows = engine.connection.execute(
        f"explain (analyze, costs off, timing off) {statement(name, 'rowlock')}".encode(), params
    ).fetchall()
    return "\n".join(row[0] for row in rows)
