"""One job in an operator's hands: its arguments edited before it starts, and one enqueued by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from rowlock import Filter, Rowlock, RowlockError
from rowlock.errors import InvalidArguments, JobNotFound
from rowlock.store.find import windows
from tests.rows import Db, put
from tests.workflow.remembering import put_workflow


def stored(db: Db, job: UUID) -> Any:  # noqa: ANN401  whatever it was given
    row = db.execute("select args::text from rowlock.jobs where id = %s", [job]).fetchone()
    assert row is not None
    return row[0]


def events(app: Rowlock) -> list[tuple[str, str, dict[str, Any]]]:
    return [(event.kind, event.actor, dict(event.details)) for event in app.jobs.events()]


# Edit


@pytest.mark.parametrize("state", ["ready", "waiting"])
def test_a_job_that_has_not_started_gets_other_arguments(app: Rowlock, db: Db, state: str) -> None:
    job = put(db, state, args={"order": 7, "to": "ann", "note": "x"}, queue="mail")

    names = app.jobs.edit(job, args={"order": 7, "to": "ben", "cc": 12345678901234567890123}, by="ada", why="moved")

    assert names == ("cc", "note", "to")
    assert stored(db, job) == '{"order":7,"to":"ben","cc":12345678901234567890123}'
    details = {"task": "t", "queue": "mail", "why": "moved", "arguments": ["cc", "note", "to"]}
    assert events(app) == [("edited", "ada", details)]


def test_what_was_given_before_and_is_given_now_is_in_no_event(app: Rowlock, db: Db) -> None:
    job = put(db, args={"token": "sesame"})

    app.jobs.edit(job, args={"token": "open"})

    assert not [text for text in ("sesame", "open") if text in str(events(app))]


def test_the_same_arguments_again_change_nothing_and_are_no_event(app: Rowlock, db: Db) -> None:
    job = put(db, args={"x": 1})

    assert app.jobs.edit(job, args={"x": 1}) == ()
    assert events(app) == []


def test_a_whole_number_and_a_float_are_two_things(app: Rowlock, db: Db) -> None:
    job = put(db, args={"x": 1})

    assert app.jobs.edit(job, args={"x": 1.0}) == ("x",)
    assert stored(db, job) == '{"x":1.0}'


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (lambda db: put(db, "running"), "is running"),
        (lambda db: put(db, "failed"), "has failed"),
        (lambda db: put(db, "succeeded"), "enqueue another one like it"),
        (lambda db: put_workflow(db, "waiting", claims=1), "workflow that has begun"),
        (lambda db: put(db, parent=put_workflow(db, "waiting", claims=1)), "child"),
    ],
    ids=["running", "failed", "succeeded", "workflow", "child"],
)
def test_what_has_begun_is_left_alone(app: Rowlock, db: Db, place: Callable[[Db], UUID], words: str) -> None:
    job = place(db)

    with pytest.raises(RowlockError, match=words):
        app.jobs.edit(job, args={"x": 2})

    assert events(app) == []


def test_arguments_must_fit_a_task_that_is_known_here(app: Rowlock, db: Db) -> None:
    @app.task(name="pay")
    def pay(cents: int) -> None: ...

    job = put(db, task="pay", args={"cents": 5})

    for wrong in ({"cents": "5"}, {"cent": 5}, {}):
        with pytest.raises(InvalidArguments):
            app.jobs.edit(job, args=wrong)
    with pytest.raises(InvalidArguments, match="mapping"):
        app.jobs.edit(job, args=[5])  # type: ignore[arg-type]

    assert stored(db, job) == '{"cents": 5}'
    assert app.jobs.edit(job, args={"cents": 6}) == ("cents",)


def test_there_is_no_such_job(app: Rowlock) -> None:
    with pytest.raises(JobNotFound):
        app.jobs.edit(UUID(int=7), args={})


def test_a_job_that_waited_for_code_is_looked_at_again_with_its_new_arguments(app: Rowlock, db: Db) -> None:
    job = put(db, "waiting", reason="arguments no longer fit", args={"x": "1"})
    paused = put(db, "waiting", waits_for="pause", args={"x": "1"})

    app.jobs.edit(job, args={"x": 1})
    app.jobs.edit(paused, args={"x": 1})

    records = {record.id: record for record in app.jobs.list().records}
    assert (records[job].state, records[job].waits_for, records[job].reason) == ("ready", None, None)
    assert (records[paused].state, records[paused].waits_for) == ("waiting", "pause")


def test_the_edited_arguments_are_what_the_handler_gets(app: Rowlock) -> None:
    @app.task(name="double")
    async def double(x: int) -> int:
        return 2 * x

    async def story() -> int:
        async with app:
            job = await double.aenqueue(1)
            await app.jobs.aedit(job.id, args={"x": 21})
            async with app.worker():
                return await job.aresult()

    assert asyncio.run(story()) == 42


# Enqueue


def test_a_job_that_is_enqueued_by_hand_says_who_did_it_and_after_which(app: Rowlock, db: Db) -> None:
    before = put(db, "failed", args={"x": 1})

    job = app.jobs.enqueue(app.call("t", x=2), like=before, by="ada", why="once more")

    assert job.created
    assert stored(db, job.id) == '{"x":2}'
    details = {"task": "t", "queue": "default", "why": "once more", "like": str(before)}
    assert events(app) == [("enqueued", "ada", details)]


def test_a_key_that_is_held_is_answered_with_its_job_and_no_event(app: Rowlock, db: Db) -> None:
    @app.task(name="t")
    def t() -> None: ...

    held = put(db, key="order:7")

    job = asyncio.run(_enqueued(app, t.using(key="order:7").bind()))

    assert (job, events(app)) == ((held, False), [])


async def _enqueued(app: Rowlock, call: Any) -> tuple[UUID, bool]:  # noqa: ANN401  of any task
    async with app:
        job = await app.jobs.aenqueue(call, by="ada")
        return job.id, job.created


# Looks that end in time


def test_a_preview_that_is_cut_short_says_that_there_may_be_more(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(10):
        put(db, "failed")
    monkeypatch.setattr(windows, "WINDOW", 4)

    whole = app.jobs.preview("retry", Filter(state="failed"))
    hurried = app.jobs.preview("retry", Filter(state="failed"), time_limit=timedelta(0))

    assert (whole.count, whole.capped) == (10, False)
    assert (hurried.count, hurried.capped) == (4, True)
