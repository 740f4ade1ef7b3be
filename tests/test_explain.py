"""Explain: one sentence on why a job is not running, or what became of it, each out of a situation that is so."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn
from uuid import UUID, uuid4

import psycopg
import pytest

from rowlock import Breaker, Cancel, Filter, Job, Keep, Key, Retry, Rowlock, RowlockError, Snooze
from rowlock import current_job as current
from rowlock.db.session import connect, converse, run
from rowlock.errors import InvalidOption
from rowlock.explain import pending
from rowlock.model.ids import new_id
from rowlock.model.row import Orphan
from rowlock.store import claim, explain, upkeep, workers
from rowlock.store.query import Statement
from rowlock.types import Explanation
from tests.engine import Engine
from tests.rows import put, put_many, travel
from tests.waiting import until
from tests.worker.process import worker_process
from tests.worker.working import Db, one, work_off, work_until, working

HOUR = timedelta(hours=1)
LIMIT = 60.0


@pytest.fixture
def app(app: Rowlock) -> Rowlock:
    """An app with tasks that end in several ways."""

    @app.task(name="send", queue="mail")
    async def send(user: int = 0) -> None: ...

    @app.task(name="fail", retry=Retry(attempts=2, base=HOUR, cap=HOUR))
    async def fail() -> NoReturn:
        raise ConnectionError("the bank is down\nand this is the small print")

    @app.task(name="cancel")
    async def cancel() -> NoReturn:
        raise Cancel("nobody wants it")

    @app.task(name="snooze")
    async def snooze() -> NoReturn:
        raise Snooze(HOUR)

    @app.task(name="whole", retry=Retry.none())
    async def whole() -> int:
        return "no number"  # type: ignore[return-value]

    return app


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """A worker on the queue `default` that knows a task `t`, has one slot, and claims when the test says so."""
    engine = Engine(url)
    yield engine
    engine.close()


def state(db: Db, job: Job[object]) -> str | None:
    row = db.execute("select state from rowlock.jobs where id = %s", [job.id]).fetchone()
    return None if row is None else row[0]


def becomes(look: Callable[[], Explanation], code: str) -> Explanation:
    """The explanation, as soon as it is this one."""
    found = until(lambda: [found] if (found := look()).code == code else [], what=code, limit=LIMIT)
    return found[0]


def id_of(moment: datetime) -> UUID:
    """An id of ours that was made then."""
    return UUID(int=int(moment.timestamp() * 1000) << 80 | 7 << 76 | 2 << 62 | 1)


@contextmanager
def listening(app: Rowlock, db: Db, *, workers: int = 1, **options: Any) -> Iterator[None]:  # noqa: ANN401  app.worker's own
    """A worker that is on the books while the test goes on, the last of so many."""
    with working(app, **options):
        until(lambda: one(db, "select count(*) from rowlock.workers") == workers, what="a worker", limit=LIMIT)
        yield


# There is no such job


def test_an_id_that_was_made_a_moment_ago_was_never_committed(app: Rowlock) -> None:
    made = UUID(new_id())

    found = app.jobs.explain(made)

    assert (found.job, found.state, found.code, found.do, found.also) == (made, None, "missing", None, ())
    assert "too late to have left history: its transaction is still open, or was rolled back" in found.says
    assert "succeeded jobs for 24 h, failed ones for 30 d and cancelled ones for 7 d" in found.says
    assert found.facts["made_at"] <= found.at


def test_an_old_id_has_left_history_and_says_when_it_was_made(app: Rowlock) -> None:
    found = app.jobs.explain(id_of(datetime(2024, 2, 29, 12, tzinfo=UTC)))

    assert found.code == "missing"
    assert "2024-02-29T12:00:00Z" in found.says
    assert "so long ago that it has left history, if it ever was there" in found.says


def test_what_operators_let_a_queue_keep_counts(app: Rowlock, db: Db) -> None:
    recent = id_of(datetime.now(UTC) - timedelta(days=60))
    before = app.jobs.explain(recent)
    db.execute("insert into rowlock.queues (name, keep_failed) values ('mail', '90 days')")

    after = app.jobs.explain(recent)

    assert "so long ago that" in before.says
    assert "so it has left history, or was never committed" in after.says


def test_ids_that_no_job_can_have_are_told_from_others(app: Rowlock) -> None:
    strange = app.jobs.explain(uuid4())
    to_come = app.jobs.explain(id_of(datetime.now(UTC) + timedelta(days=1)))

    assert "not one of Rowlock's" in strange.says
    assert "yet to come" in to_come.says


def test_who_has_deleted_it_is_said(app: Rowlock) -> None:
    job = app.enqueue("send")
    app.jobs.delete(Filter(ids=[job.id]), by="ann", why="a mistake")

    found = job.explain()

    assert (found.state, found.code, found.facts["deleted_by"]) == (None, "deleted", "ann")
    assert found.says.startswith("It was deleted by ann at ")
    assert found.says.endswith(": a mistake.")


def test_a_job_that_has_left_history_is_known_by_its_events(app: Rowlock, db: Db) -> None:
    job = app.enqueue("send")
    job.cancel()
    db.execute("delete from rowlock.history")

    found = job.explain()

    assert found.code == "missing"
    assert "It has left history: the last that was heard of it is that it was cancelled at" in found.says


def test_a_job_of_an_open_transaction_is_not_committed(app: Rowlock, db: Db) -> None:
    task = app.tasks.get("send")
    assert task is not None
    with db.transaction():
        job = task.using(connection=db).enqueue()

        inside = job.explain()

    assert (inside.code, inside.state) == ("uncommitted", None)
    assert job.explain().code == "no_worker"


@pytest.mark.parametrize("wrong", ["42", "", None, 7])
def test_what_is_no_id_is_refused_before_anything_is_asked(wrong: str) -> None:
    nowhere = Rowlock("postgresql://nobody@127.0.0.1:1/none")

    with pytest.raises(InvalidOption, match="is not a UUID"):
        nowhere.jobs.explain(wrong)


# It has ended


def test_it_has_succeeded(app: Rowlock, db: Db) -> None:
    job = app.enqueue("send", user=1)
    work_off(app, db, queues="mail")

    found = job.explain()

    assert (found.state, found.code, found.do) == ("succeeded", "succeeded", None)
    assert found.says.startswith("It succeeded at 20")
    assert found.facts["took"] >= timedelta(0)


def test_it_has_failed_when_its_attempts_were_spent(app: Rowlock, db: Db) -> None:
    job = app.enqueue("fail")
    work_off(app, db)
    app.jobs.run_next(Filter(ids=[job.id]))
    work_off(app, db)

    found = job.explain()

    assert (found.state, found.code) == ("failed", "failed")
    assert "in attempt 2 of 2, because all its attempts are spent: ConnectionError: the bank is down." in found.says
    assert f"`rowlock jobs retry {job.id}`" in str(found.do)
    assert (found.facts["reason"], found.facts["error"]) == ("exhausted", "ConnectionError")


def test_it_has_failed_because_of_its_result(app: Rowlock, db: Db) -> None:
    job = app.enqueue("whole")
    work_off(app, db)

    found = job.explain()

    assert found.code == "failed"
    assert "because what its handler returned cannot be stored" in found.says


def test_it_has_failed_as_poison(app: Rowlock, db: Db, engine: Engine, url: str) -> None:
    [job] = engine.enqueue()
    for _ in range(3):
        doomed = Engine(url)
        [row] = doomed.claim() or doomed.run(claim.claim_suspect(queues=["default"], worker=doomed.worker))
        db.execute("update rowlock.workers set lease = rowlock.now() where id = %s", [doomed.worker])
        engine.run(upkeep.rescue([Orphan(row.id, row.token)], crashes=3, keep=Keep(), actor="me"))
        doomed.close()

    found = app.jobs.explain(job)

    assert (found.state, found.facts["crashes"]) == ("failed", 3)
    assert "as poison" in found.says
    assert "3 workers died while they ran it (test:1)." in found.says
    assert found.facts["died"] == ["test:1"] * 3


def test_who_has_cancelled_it_is_said(app: Rowlock) -> None:
    job = app.enqueue("send")
    job.cancel(by="ann", why="the customer left")

    found = job.explain()

    assert (found.state, found.code, found.facts["by"]) == ("cancelled", "cancelled", "ann")
    assert found.says.endswith(" by ann: the customer left.")


def test_its_handler_has_cancelled_it(app: Rowlock, db: Db) -> None:
    job = app.enqueue("cancel")
    work_off(app, db)

    found = job.explain()

    assert found.says.startswith("Its handler cancelled it at ")
    assert found.says.endswith(": nobody wants it.")


def test_it_has_expired_before_and_after_somebody_looked(app: Rowlock, db: Db) -> None:
    task = app.tasks.get("send")
    assert task is not None
    job = task.using(expires=timedelta(milliseconds=1)).enqueue()

    before = becomes(job.explain, "expired")
    work_until(app, lambda: state(db, job) is None, queues="mail")
    after = job.explain()

    assert before.state == "ready"
    assert "it will not run, but end as cancelled as soon as a worker looks" in before.says
    assert (after.state, after.facts["reason"]) == ("cancelled", "expired")
    assert "it expired before a worker had started it" in after.says


# It is not due


def test_it_was_enqueued_for_later(app: Rowlock) -> None:
    task = app.tasks.get("send")
    assert task is not None
    job = task.using(delay=timedelta(hours=3)).enqueue()

    found = job.explain()

    assert (found.state, found.code) == ("ready", "delayed")
    assert found.says == f"It is not due until {found.facts['run_at']:%Y-%m-%dT%H:%M:%SZ} (in 3 h)."
    assert found.do == f"`rowlock jobs run-next {job.id}` runs it now"
    assert found.also == ("No live worker listens on queue 'mail', nor does any worker live at all.",)


def test_it_is_retried_later(app: Rowlock, db: Db) -> None:
    job = app.enqueue("fail")
    work_off(app, db)

    found = job.explain()

    assert (found.code, found.facts["error"]) == ("retrying", "ConnectionError")
    assert found.says.startswith("It is retried at ")
    assert found.says.endswith(", after attempt 1 of 2 failed: ConnectionError: the bank is down.")


def test_it_is_snoozed(app: Rowlock, db: Db) -> None:
    job = app.enqueue("snooze")
    work_off(app, db)

    found = job.explain()

    assert found.code == "snoozed"
    assert found.says.startswith("Its handler snoozed it until ")


# Pauses


def test_its_queue_is_paused(app: Rowlock, db: Db) -> None:
    job = app.enqueue("send")
    app.queues.pause("mail", duration=HOUR, why="the mail server moves", by="ann")

    with listening(app, db, queues="mail"):
        found = job.explain()

    assert (found.code, found.facts["paused_by"], found.also) == ("queue_paused", "ann", ())
    assert found.says.startswith("Queue 'mail' is paused by ann since ")
    assert found.says.endswith(": the mail server moves.")
    assert found.do == "`rowlock queues resume mail`"


def test_its_task_is_paused_until_somebody_resumes_it(app: Rowlock, db: Db) -> None:
    app.tasks.pause("send", by="ann")
    job = app.enqueue("send")
    before = job.explain()
    with working(app, queues="mail"):
        until(lambda: state(db, job) == "waiting")

        found = job.explain()

    assert (before.state, before.code) == ("ready", "task_paused")
    assert (found.state, found.code, found.also) == ("waiting", "task_paused", ())
    assert found.says.endswith(", until somebody resumes it.")
    assert found.do == "`rowlock tasks resume send`"


def test_the_breaker_of_its_task_has_paused_it(app: Rowlock, db: Db) -> None:
    @app.task(name="charge", breaker=Breaker(failures=1, window=HOUR, pause=HOUR))
    async def charge() -> NoReturn:
        raise ConnectionError("the bank is down")

    charge.enqueue()
    work_until(app, lambda: one(db, "select count(*) from rowlock.pauses"))
    job = charge.enqueue()

    found = job.explain()

    assert (found.code, found.facts["paused_by"]) == ("task_paused", "breaker")
    assert found.says.startswith("The breaker of task 'charge' has paused it since ")
    assert found.says.endswith(": 1 failure within 1 hour, the last: ConnectionError.")
    assert "`rowlock tasks resume charge`, or wait" in str(found.do)


def test_its_pause_is_over_and_nobody_has_released_it(app: Rowlock, db: Db) -> None:
    app.tasks.pause("send", duration=HOUR)
    job = app.enqueue("send")
    work_until(app, lambda: state(db, job) == "waiting", queues="mail")
    travel(db, 2 * HOUR)

    found = job.explain()

    assert found.code == "pause_over"
    assert "which is over; but no worker lives that could release it" in found.says


# Those who could run it


def test_nobody_listens_on_its_queue(app: Rowlock, db: Db) -> None:
    job = app.enqueue("send")
    with listening(app, db, queues=["default", "reports"]):
        found = job.explain()

    assert (found.code, found.facts["listened_to"]) == ("no_worker", ["default", "reports"])
    assert found.says == "No live worker listens on queue 'mail'; those that live listen on default, reports."
    assert found.do == "start one: `rowlock worker --app MODULE --queues mail`"


def test_nobody_who_listens_knows_its_task(app: Rowlock, db: Db) -> None:
    job = app.enqueue("sned", x=1)
    later = app.call("sned").task.using(delay=HOUR).enqueue()
    with working(app, queues=["default", "mail"]):
        until(lambda: state(db, job) == "waiting")

        found, not_yet = job.explain(), later.explain()

    assert (found.state, found.code, found.facts["similar_tasks"]) == ("waiting", "unknown_task", ["send"])
    assert len(found.facts["versions"]) == 1
    assert found.says == ("It waits for the code of task 'sned'; what is known there and reads like it is send.")
    assert "aliases=" in str(found.do)
    assert not_yet.code == "delayed"
    assert "1 live worker listens on queue 'default', but none of them knows task 'sned'" in not_yet.also[0]


def test_a_worker_has_its_code_now_and_has_not_taken_it_up_yet(app: Rowlock, db: Db, url: str) -> None:
    job = app.enqueue("t")
    work_until(app, lambda: state(db, job) == "waiting")
    before = job.explain()
    engine = Engine(url)

    found = job.explain()

    engine.close()
    assert (before.code, before.facts["versions"]) == ("unknown_task", [])
    assert (found.code, found.facts["workers"]) == ("code_is_there", ["test:1"])


def test_another_queue_is_listened_to_by_those_who_know_its_task(app: Rowlock, db: Db, url: str) -> None:
    job = app.enqueue("send")
    with Rowlock(url) as other, listening(app, db), listening(other, db, queues="mail", workers=2):
        found = becomes(job.explain, "unknown_task")

    assert found.facts["known_on"] == ["default"]
    assert str(found.do).startswith(f"`rowlock jobs move {job.id} --to default`")


def test_its_arguments_no_longer_fit(app: Rowlock, db: Db, url: str) -> None:
    job = app.enqueue("send", user=1)
    with Rowlock(url) as changed:

        @changed.task(name="send", queue="mail")
        async def send(user: int, subject: str) -> None: ...

        before = changed.jobs.explain(job.id)
        work_until(changed, lambda: state(db, job) == "waiting", queues="mail")
        after, by_others = changed.jobs.explain(job.id), app.jobs.explain(job.id)

    assert before.code == "no_worker"
    assert before.also[0].startswith("Its arguments no longer fit the code of this process: ")
    assert (after.code, after.state) == ("misfit", "waiting")
    assert after.says.startswith("Its arguments no longer fit task 'send': ")
    assert "subject" in after.says
    assert f"`rowlock jobs cancel {job.id}`" in str(after.do)
    assert by_others.do == "they fit the code of this process: deploy it to the workers"


def test_every_worker_on_its_queue_is_stopping(app: Rowlock) -> None:
    begun, over = threading.Event(), threading.Event()

    @app.task(name="hold")
    def hold() -> None:
        begun.set()
        over.wait(LIMIT)

    async def stop_in_the_middle() -> Explanation:
        async with app, app.worker(slots=1, grace=timedelta(seconds=LIMIT)) as worker:
            await hold.aenqueue()
            await asyncio.to_thread(begun.wait, LIMIT)
            worker.stop()
            job = await hold.aenqueue()
            found = await asyncio.to_thread(becomes, job.explain, "stopping")
            over.set()
            return found

    found = asyncio.run(stop_in_the_middle())

    assert found.says == f"Every worker that listens on queue 'default' is stopping: {found.facts['workers'][0]}."
    assert str(found.do).startswith("start another: ")


def test_it_waits_its_turn_behind_others_of_its_queue(app: Rowlock, db: Db) -> None:
    over = threading.Event()

    @app.task(name="hold")
    def hold() -> None:
        over.wait(LIMIT)

    first = hold.enqueue()
    with working(app, slots=1):
        until(lambda: state(db, first) == "running")
        put(db, task="hold", priority=-1)  # behind it
        ahead, last, urgent = hold.enqueue(), hold.enqueue(), hold.using(priority=2).enqueue()

        found = [job.explain() for job in (urgent, ahead, last)]
        over.set()

    assert [(one.code, one.facts["ahead"], one.facts["slots"]) for one in found] == [
        ("turn", 0, 1),
        ("turn", 1, 1),
        ("turn", 2, 1),
    ]
    assert found[1].says == (
        "It waits its turn: 1 job is before it on queue 'default', for which there is 1 worker with 1 slot, none free."
    )


def test_what_is_before_it_is_counted_so_far(app: Rowlock, db: Db, engine: Engine) -> None:
    put_many(db, 10_001)
    job = put(db, task="t")

    found = app.jobs.explain(job)

    assert (found.facts["ahead"], found.facts["and_more"]) == (10_000, True)
    assert "over 10,000 jobs are before it" in found.says


def test_nothing_is_in_its_way(app: Rowlock, engine: Engine) -> None:
    [job] = engine.enqueue()

    found = app.jobs.explain(job)

    assert (found.code, found.facts["free"]) == ("next", 1)
    assert "run `rowlock doctor`" in str(found.do)


def test_it_is_a_suspect(app: Rowlock, db: Db, engine: Engine) -> None:
    [first, job] = engine.enqueue(count=2)
    db.execute("update rowlock.jobs set crashes = 2, state = 'waiting', waits_for = 'suspect'")
    db.execute(
        """insert into rowlock.events (kind, job, actor, at, details)
            select
                'rescued', %s, 'w', now() + ago,
                json_build_object('owner', owner, 'worker', 'an id', 'crashed', crashed)
            from (
                values ('a:1', true, interval '-3 s'), ('b:2', false, '-2 s'), ('unknown', true, '-1 s')
            ) as died (owner, crashed, ago)""",
        [job],
    )

    waits = app.jobs.explain(job)
    claimed = engine.run(claim.claim_suspect(queues=["default"], worker=engine.worker))
    behind, running = app.jobs.explain(job), app.jobs.explain(first)

    dead = "2 workers died while they ran it (a:1, an id): each worker runs one such job at a time"
    assert (waits.code, waits.says) == ("suspect", f"{dead}, beside others, and 1 job is before it.")
    assert [row.id for row in claimed] == [str(first)]
    assert behind.says == f"{dead}, and its worker is at one; 0 jobs are before it."
    assert str(behind.do).startswith("wait for one of them to end, or start another worker")
    assert running.also == ("2 workers died while they ran it: its worker runs no other such job beside it.",)


# It is running


def test_it_is_running_and_says_how_far_it_is(app: Rowlock, db: Db) -> None:
    over = threading.Event()

    @app.task(name="resize", queue="mail")
    def resize() -> None:
        current().progress(0.4, "thole.png")
        over.wait(LIMIT)

    job = resize.enqueue()
    with working(app, queues="mail"):
        until(lambda: one(db, "select progress is not null from rowlock.jobs"))

        found = job.explain()
        over.set()

    assert (found.state, found.code, found.do) == ("running", "running", None)
    assert f":{os.getpid()} has had it since " in found.says
    assert found.says.endswith(", attempt 1 of 10, 40% done (thole.png).")
    assert found.facts["lease_left"] > timedelta(0)


def test_its_cancel_was_asked_for_and_its_handler_goes_on(app: Rowlock, db: Db) -> None:
    over = threading.Event()

    @app.task(name="deaf", queue="mail")
    def deaf() -> None:
        over.wait(LIMIT)

    job = deaf.enqueue()
    with working(app, queues="mail"):
        until(lambda: state(db, job) == "running")
        job.cancel(by="ann", why="the customer left")

        found = job.explain()
        over.set()

    assert (found.code, found.facts["by"]) == ("cancelling", "ann")
    assert "as ann asked at " in found.says
    assert found.says.endswith(": the customer left; but its handler has not ended yet.")
    assert found.also[0].startswith("It is running: ")


def test_its_worker_was_killed(app: Rowlock, url: str, db: Db) -> None:
    with worker_process(url, lease=2.0) as process:
        job = app.enqueue("hold")
        until(lambda: state(db, job) == "running", limit=LIMIT)
        process.send_signal(signal.SIGKILL)

        found = becomes(job.explain, "lease_lost")
    db.execute("delete from rowlock.workers")
    unknown = job.explain()

    assert f":{process.pid} had it, but its lease ran out " in found.says
    assert "no worker lives that could rescue it" in found.says
    assert str(found.do).startswith("start one: ")
    assert unknown.code == "lease_lost"
    assert "which is not on the books any more" in unknown.says


def test_a_job_that_ends_between_two_looks_is_looked_at_again(engine: Engine, url: str) -> None:
    [job] = engine.enqueue()
    [row] = engine.claim()
    asked: list[str] = []

    def ask(said: Statement) -> list[Any]:
        answer = run(session.cursor(), said, "rowlock")
        if said.name == "job_show" and "job_show" not in asked:
            engine.settle(row)
            engine.run(workers.leave(worker=engine.worker))
        asked.append(said.name)
        return answer

    with connect(url, name="test") as session, session.transaction():
        situation = converse(ask, explain.gather_facts(UUID(job)))

    assert situation.record is not None
    assert situation.record.state == "succeeded"
    assert asked.count("job_show") == 3


# Where it comes from, and what else is so


def test_a_job_of_a_schedule_says_so(app: Rowlock) -> None:
    task = app.tasks.get("send")
    assert task is not None
    job = task.using(tags=["schedule:nightly", "slot:2026-11-16T09:00:00Z", "nightly"]).enqueue()

    found = job.explain()

    assert (found.facts["schedule"], found.facts["slot"]) == ("nightly", "2026-11-16T09:00:00Z")
    assert found.also == ("Schedule 'nightly' made it for its slot 2026-11-16T09:00:00Z.",)


def test_who_has_its_key_now_is_said(app: Rowlock) -> None:
    task = app.tasks.get("send")
    assert task is not None
    first = task.using(key="user 7").enqueue()
    before = first.explain()
    first.cancel()
    second = task.using(key="user 7").enqueue()

    after = first.explain()

    assert (before.facts["key"], len(before.also)) == ("user 7", 0)
    assert after.also == (f"Its key 'user 7' belongs to job {second.id} now, so a retry would pass it over.",)


def test_a_key_that_is_held_for_a_period_is_said(app: Rowlock, db: Db) -> None:
    task = app.tasks.get("send")
    assert task is not None
    job = task.using(key=Key("user 7", period=HOUR)).enqueue()
    work_off(app, db, queues="mail")

    found = job.explain()

    assert found.code == "succeeded"
    assert found.also[0].startswith("It still has its key 'user 7' until 20")


def test_an_explanation_is_json_and_a_sentence(app: Rowlock) -> None:
    job = app.enqueue("send")
    app.queues.pause("mail", by="ann", duration=HOUR)

    found = job.explain()

    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["job"] == str(job.id)
    assert plain["facts"]["until"] == found.facts["until"].isoformat()
    assert str(found) == f"{found.says} To do: `rowlock queues resume mail`."


def test_names_that_a_shell_would_read_are_quoted(app: Rowlock) -> None:
    task = app.tasks.get("send")
    assert task is not None
    job = task.using(queue="a b; rm").enqueue()

    found = job.explain()

    assert found.do == "start one: `rowlock worker --app MODULE --queues 'a b; rm'`"


def test_async_callers_are_answered_alike_and_sync_ones_refused_in_a_loop(app: Rowlock) -> None:
    async def ask() -> tuple[Explanation, Explanation]:
        async with app:
            job = await app.aenqueue("send")
            with pytest.raises(RowlockError, match=r"await job.aexplain\(\)"):
                job.explain()
            with pytest.raises(RowlockError, match=r"await app\.jobs\.aexplain"):
                app.jobs.explain(job.id)
            return await job.aexplain(), await app.jobs.aexplain(str(job.id))

    one, other = asyncio.run(ask())

    assert (one.job, one.code) == (other.job, other.code)
    assert one.code == "no_worker"


def test_a_row_that_a_session_has_locked_is_said_with_who_and_what_to_do(
    app: Rowlock, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "_LONG_HELD", 0.0)
    job = app.enqueue("send")
    with psycopg.connect(url, application_name="a forgotten psql") as other:
        other.execute("select from rowlock.jobs for update")
        pid = other.info.backend_pid

        found = job.explain()

    assert found.code == "row_locked"
    assert found.says.startswith(f"Its row is locked by pid {pid} (a forgotten psql, ")
    assert f"pg_terminate_backend({pid})" in str(found.do)


def test_of_several_sessions_that_have_a_row_locked_one_is_said_and_how_many_others_there_are(
    app: Rowlock, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "_LONG_HELD", 0.0)
    job = app.enqueue("send")
    with psycopg.connect(url, application_name="a report") as first, psycopg.connect(url) as second:
        for session in (first, second):
            session.execute("select from rowlock.jobs for share")
        pid = first.info.backend_pid

        found = job.explain()

    assert (found.code, found.facts["pid"], found.facts["others"]) == ("row_locked", pid, 1)
    assert found.says.startswith(f"Its row is locked by pid {pid} (a report, ")
    assert ", and by 1 other session: workers pass over it until all these transactions end." in found.says


def test_a_job_that_was_claimed_ahead_is_not_said_to_run(app: Rowlock, db: Db) -> None:
    worker = new_id()
    db.execute(
        """
        insert into rowlock.workers (id, host, pid, queues, slots, tasks, version, started_at, lease, lasts)
        values (%s, 'h', 26111, '{default}', 1, '{t}', '1', now(), now() + interval '1 min', '1 min')
        """,
        [worker],
    )
    runs, ahead = (
        put(db, "running", worker=worker, begun=begun, started_at=datetime.now(UTC)) for begun in (True, False)
    )

    first, second = app.jobs.explain(runs), app.jobs.explain(ahead)

    assert (first.code, second.code) == ("running", "claimed")
    assert second.says.startswith("Claimed ahead by h:26111")
    assert second.says.endswith("it has not begun yet.")

    db.execute("update rowlock.workers set blocked = 42, blocked_by = 'computes 01a1'")
    third = app.jobs.explain(ahead)

    assert third.code == "claimed"
    assert "it has not begun yet. But h:26111" in third.says
    assert "computes 01a1" in third.says


@pytest.mark.parametrize(
    ("table", "mode", "unknown"),
    [
        ("pauses", "AccessExclusiveLock", ["pauses"]),
        ("workers", "AccessExclusiveLock", ["workers"]),
        ("jobs", "ExclusiveLock", []),
    ],
)
def test_a_lock_that_keeps_workers_from_claiming_is_said_of_a_due_job(
    app: Rowlock, engine: Engine, db: Db, url: str, *, table: str, mode: str, unknown: list[str]
) -> None:
    due, later = put(db, run_at=datetime.now(UTC) - HOUR), put(db, run_at=datetime.now(UTC) + HOUR)
    with psycopg.connect(url, application_name="the migration") as other:
        words = mode.removesuffix("Lock").replace("Exclusive", " exclusive")
        other.execute(f"lock rowlock.{table} in {words} mode".encode())
        pid = other.info.backend_pid

        found, delayed = app.jobs.explain(due), app.jobs.explain(later)

    assert (found.code, found.state, found.facts["table"]) == ("locked", "ready", table)
    assert found.says.startswith(f"No worker can claim a job: pid {pid} (the migration, ")
    assert f" has held {mode} on the table of {table}, which every claim needs, for up to " in found.says
    assert f"pg_terminate_backend({pid})" in str(found.do)
    assert list(found.unknown) == unknown
    assert delayed.code == "delayed"


def test_a_job_in_a_history_of_which_a_part_is_locked_cannot_be_read(app: Rowlock, db: Db, url: str) -> None:
    job = app.enqueue("send")
    part = one(
        db, "select inhrelid::regclass::text from pg_inherits where inhparent = 'rowlock.history'::regclass limit 1"
    )
    with psycopg.connect(url) as other:
        other.execute(f"lock {part} in access exclusive mode".encode())

        found = job.explain()

    assert (found.code, found.state) == ("locked", None)
    assert found.facts["table"] == part.removeprefix("rowlock.")


def test_what_somebody_has_locked_is_said(app: Rowlock, engine: Engine, url: str) -> None:
    job = app.enqueue("t")
    with psycopg.connect(url) as other:
        other.execute("lock rowlock.events in access exclusive mode")

        found = job.explain()

    assert found.unknown == {"events": "somebody holds a lock on it"}
    assert found.code == "next"
