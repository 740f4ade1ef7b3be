"""The page of one job: what it tells, to whom, and what can be done there."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from rowlock import Rowlock
from rowlock.dashboard import Dashboard, Role, Visitor
from rowlock.dashboard.drawings.job_life import WIDTH, periods, placed_periods
from rowlock.dashboard.drawings.traceback import lines, place
from rowlock.dashboard.restore import restored
from rowlock.errors import InvalidArguments
from rowlock.model.record import JobError, JobRecord
from rowlock.model.row import Orphan
from rowlock.model.spec import Keep
from rowlock.store import upkeep, workers
from tests.dashboard.browser import Browser, browsing
from tests.dashboard.conftest import Act
from tests.engine import Engine
from tests.rows import Db, put

ODD = 'a/b <script>alert(1)</script> "q" ?x=1&y مرحبا'
HUGE = 123456789012345678901234567890
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def args_of(db: Db, job: UUID) -> Any:  # noqa: ANN401  whatever it was given
    row = db.execute("select args from rowlock.jobs where id = %s", [job]).fetchone()
    assert row is not None
    return row[0]


# What it tells


@pytest.mark.parametrize("state", ["ready", "running", "waiting", "succeeded", "failed", "cancelled"])
def test_a_job_is_shown_in_every_state_with_a_sentence_on_it(client: Browser, db: Db, state: str) -> None:
    job = put(db, state, task=ODD, queue=ODD, tags=[ODD], key=ODD, args={ODD: [ODD, HUGE]}, error=ODD)

    page, told = client.get(f"/jobs/{job}"), client.get(f"/api/jobs/{job}").json()

    assert page.status_code == 200
    assert told["explanation"]["says"]
    assert str(HUGE) in page.text
    assert "<script>alert" not in page.text
    assert " style=" not in page.text
    assert told["job"]["args"] == {ODD: [ODD, HUGE]}


def test_a_job_that_is_gone_is_not_found_in_a_sentence_that_says_why(client: Browser, act: Act, db: Db) -> None:
    job = put(db)
    act(f"/jobs/{job}/delete", why="a test")

    page, unknown, nonsense = client.get(f"/jobs/{job}"), client.get(f"/jobs/{uuid4()}"), client.get("/jobs/x")

    assert (page.status_code, "It was deleted by ann" in page.text) == (404, True)
    assert (unknown.status_code, nonsense.status_code) == (404, 400)


def test_who_may_not_see_arguments_is_told_that_they_are_hidden(app: Rowlock, db: Db) -> None:
    job = put(db, "succeeded", args={"card": "4000"}, result='{"paid": 4711}')

    with browsing(Dashboard(app, auth=lambda _request: Visitor("vic", "viewer"))) as browser:
        page, told = browser.get(f"/jobs/{job}"), browser.get(f"/api/jobs/{job}")

    assert "Arguments are hidden from viewers." in page.text
    assert "The result is hidden from viewers." in page.text
    assert not [text for text in ("4000", "4711", "Raw JSON") if text in page.text]
    assert not [text for text in ("4000", "4711") if text in told.text]


def test_what_was_done_to_a_job_is_told_with_who_and_why(client: Browser, act: Act, db: Db) -> None:
    job = put(db)
    act(f"/jobs/{job}/move", to="slow", why="too many")

    page = client.get(f"/jobs/{job}")

    assert "<q>too many</q>" in page.text
    assert "ann moved" in page.text


# Its life


def record(**facts: Any) -> JobRecord:  # noqa: ANN401  whatever a field takes
    usual: dict[str, Any] = dict.fromkeys(JobRecord.__dataclass_fields__)
    usual |= {"id": uuid4(), "task": "t", "queue": "q", "state": "ready", "priority": 0, "attempts": 10, "errors": ()}
    usual |= {"failures": 0, "crashes": 0, "claims": 0, "tags": (), "created_at": NOW, "run_at": NOW, "args": {}}
    return JobRecord(**usual | facts)


def failed(attempt: int, start: int, end: int, kind: str = "OSError") -> JobError:
    return JobError(kind, "no", "", attempt, None, NOW + start * SECOND, NOW + end * SECOND)


def told(job: JobRecord, at: int = 60) -> list[tuple[str, int | None, float]]:
    now = NOW + at * SECOND
    return [(one.kind, one.number, one.length(now).total_seconds()) for one in periods(job, now)]


def test_a_life_is_waits_and_attempts_one_after_the_other() -> None:
    job = record(
        state="succeeded",
        claims=3,
        errors=(failed(1, 2, 3), failed(2, 8, 20, "WorkerLost")),
        started_at=NOW + 30 * SECOND,
        ended_at=NOW + 31 * SECOND,
    )

    assert told(job) == [
        ("waiting", None, 2),
        ("failed", 1, 1),
        ("between", None, 5),
        ("crashed", 2, 12),
        ("between", None, 10),
        ("succeeded", 3, 1),
    ]


def test_a_delay_is_told_from_a_wait_for_its_turn() -> None:
    later = NOW + 40 * SECOND

    assert told(record(run_at=later), at=10) == [("delayed", None, 10)]
    assert told(record(run_at=later)) == [("delayed", None, 40), ("waiting", None, 20)]
    assert told(record(state="running", claims=1, run_at=later, started_at=later + 5 * SECOND)) == [
        ("delayed", None, 40),
        ("waiting", None, 5),
        ("running", 1, 15),
    ]


def test_a_worker_that_is_gone_is_named_by_the_rescue_of_its_job(client: Browser, db: Db, url: str) -> None:
    sweeper, gone = Engine(url), Engine(url)
    [job] = gone.enqueue()
    [row] = gone.claim()
    db.execute("update rowlock.workers set lease = rowlock.now() where id = %s", [gone.worker])
    sweeper.run(upkeep.rescue([Orphan(row.id, row.token)], crashes=3, keep=Keep(), actor="me"))
    sweeper.run(workers.bury())
    for engine in (sweeper, gone):
        engine.close()

    page = client.get(f"/jobs/{job}").text

    assert f'<span title="{gone.worker}">test:1</span> <span class="quiet">gone</span>' in page
    assert ", on test:1</title>" in page


def test_an_attempt_that_goes_on_later_is_no_delay_of_the_first() -> None:
    parked = record(state="waiting", claims=1, started_at=NOW + SECOND, run_at=NOW + timedelta(days=2))

    assert told(parked) == [("waiting", None, 1), ("returned", 1, 0), ("delayed", None, 59)]


def test_a_picture_is_as_wide_as_the_page_and_nothing_in_it_is_invisible() -> None:
    errors = tuple(failed(n, 10 * n, 10 * n) for n in range(1, 11))
    job = record(state="failed", claims=10, errors=errors, started_at=NOW, ended_at=NOW + timedelta(days=30))

    placed = placed_periods(periods(job, NOW), NOW)

    assert min(one.width for one in placed) > 10
    assert placed[-1].x + placed[-1].width == pytest.approx(WIDTH, abs=1)
    assert [one.x for one in placed] == sorted(one.x for one in placed)


# Tracebacks

TRACE = """Traceback (most recent call last):
  File "/srv/venv/lib/python3.11/site-packages/httpx/_client.py", line 10, in send
    raise Timeout
  File "/srv/shop/mail.py", line 7, in send_receipt
    await client.post(url)
  File "/srv/venv/lib/python3.11/asyncio/tasks.py", line 2, in wait
    return await fut
shop.MailboxBusy: over quota
"""


def test_lines_of_a_traceback_are_told_by_whose_code_they_are() -> None:
    kinds = [line.kind for line in lines(TRACE)]

    assert kinds == ["said", "library", "library", "code", "code", "library", "library", "said"]
    assert "\n".join(line.text for line in lines(TRACE)) == TRACE.rstrip("\n")


def test_the_place_is_the_last_of_their_own_code() -> None:
    found = place(TRACE)

    assert found is not None
    assert (found.file, found.line, found.function) == ("/srv/shop/mail.py", 7, "send_receipt")
    assert found.source == "await client.post(url)"
    assert place("") is None


# What can be done


def test_one_job_is_retried_moved_hurried_and_cancelled(act: Act, db: Db) -> None:
    job = put(db, "succeeded")

    answers = [
        act(f"/jobs/{job}/retry", why="again"),
        act(f"/jobs/{job}/move", to="slow"),
        act(f"/jobs/{job}/reprioritise", priority="-2"),
        act(f"/jobs/{job}/run_next"),
    ]
    stands = db.execute("select state, queue, priority from rowlock.jobs").fetchone()
    answers.append(act(f"/jobs/{job}/cancel"))

    assert [answer.status_code for answer in answers] == [200] * 5
    assert stands == ("ready", "slow", 4)
    assert db.execute("select state from rowlock.history").fetchall() == [("cancelled",)]


def test_what_cannot_be_done_with_a_job_is_refused_in_a_sentence(act: Act, db: Db) -> None:
    ready, failed_one = put(db), put(db, "failed")

    retried, moved = act(f"/jobs/{ready}/retry"), act(f"/jobs/{ready}/move", to="default")
    hurried, nobody = act(f"/jobs/{failed_one}/run_next"), act(f"/jobs/{uuid4()}/retry")

    assert (retried.status_code, retried.json()["error"]) == (
        409,
        "retry is not for a job that is ready; nothing was changed",
    )
    assert moved.json()["error"] == "the job is on queue default already"
    assert (hurried.status_code, nobody.status_code) == (409, 404)


def test_buttons_are_those_of_the_state_and_of_the_role(app: Rowlock, db: Db) -> None:
    ready, ended = put(db), put(db, "failed")
    seen: dict[tuple[Role, UUID], str] = {}

    for role in ("viewer", "operator", "admin"):
        with browsing(Dashboard(app, auth=lambda _request, role=role: Visitor("vic", role))) as browser:  # type: ignore[misc]
            for job in (ready, ended):
                seen[role, job] = browser.get(f"/jobs/{job}").text

    paths = ("retry", "cancel", "run_next", "edit", "delete")
    found = {key: [path for path in paths if f'action="/jobs/{key[1]}/{path}"' in text] for key, text in seen.items()}
    assert found == {
        ("viewer", ready): [],
        ("viewer", ended): [],
        ("operator", ready): ["cancel", "run_next"],
        ("operator", ended): ["retry"],
        ("admin", ready): ["cancel", "run_next", "edit", "delete"],
        ("admin", ended): ["retry", "delete"],
    }


def test_arguments_are_edited_and_checked(app: Rowlock, act: Act, db: Db) -> None:
    @app.task(name="pay")
    def pay(cents: int) -> None: ...

    job = put(db, task="pay", args={"cents": 5})

    edited = act(f"/jobs/{job}/edit", args=json.dumps({"cents": HUGE}), why="typo")
    wrong = [act(f"/jobs/{job}/edit", args=text) for text in ('{"cents": "x"}', "[1]", "{", '{"cents": NaN}')]

    assert edited.json()["says"] == "Changed: cents."
    assert [answer.status_code for answer in wrong] == [400] * 4
    assert args_of(db, job) == {"cents": HUGE}


def test_a_secret_that_is_not_shown_stays_as_it_is_when_the_rest_is_edited(client: Browser, act: Act, db: Db) -> None:
    job = put(db, args={"password": "sesame", "to": "ann", "deep": {"api_key": "abc", "n": 1}})

    shown = client.get(f"/api/jobs/{job}").json()["job"]["args"]
    act(f"/jobs/{job}/edit", args=json.dumps(shown | {"to": "ben"}))

    assert "sesame" not in str(shown)
    assert args_of(db, job) == {"password": "sesame", "to": "ben", "deep": {"api_key": "abc", "n": 1}}


def test_what_stands_for_a_secret_is_restored_only_where_it_stood() -> None:
    stored = {"password": "sesame", "list": [{"token": "abc", "n": 1}]}

    assert restored({"list": [{"token": "***", "n": 2}]}, stored) == {"list": [{"token": "abc", "n": 2}]}
    assert restored({"password": "new", "x": True}, stored | {"x": 1}) == {"password": "new", "x": True}
    with pytest.raises(InvalidArguments, match="'to' has"):
        restored({"to": "***"}, stored)


def test_one_like_it_is_enqueued_with_what_was_changed(app: Rowlock, client: Browser, act: Act, db: Db) -> None:
    job = put(db, "failed", task="legacy", queue="slow", args={"x": 1, "password": "sesame"}, priority=2)

    page = client.get(f"/jobs/{job}")
    said = {"task": "legacy", "queue": "slow", "priority": "2", "like": str(job), "why": "once more"}
    answer = act("/jobs/enqueue", args='{"x": 2, "password": "***"}', run_at="15min", **said)

    assert "Enqueue like this one" in page.text
    made = UUID(answer.json()["facts"]["id"])
    assert answer.json()["to"] == f"/jobs/{made}"
    assert args_of(db, made) == {"x": 2, "password": "sesame"}
    row = db.execute("select queue, priority, run_at > rowlock.now() + interval '10 min' from rowlock.jobs").fetchone()
    assert row == ("slow", 2, True)
    [event] = app.jobs.events(made)
    assert (event.kind, event.actor, event.details["like"]) == ("enqueued", "ann", str(job))


def test_only_tasks_that_are_known_are_enqueued_where_any_are(app: Rowlock, act: Act, db: Db) -> None:
    @app.task(name="mail.send")
    def send(order: int) -> None: ...

    unknown = act("/jobs/enqueue", task="mail.sendd", args='{"order": 1}')
    misfit = act("/jobs/enqueue", task="mail.send", args='{"order": "x"}')
    known = act("/jobs/enqueue", task="mail.send", args='{"order": 1}')

    assert "did you mean mail.send?" in unknown.json()["error"]
    assert (unknown.status_code, misfit.status_code, known.status_code) == (409, 400, 200)
    assert db.execute("select task from rowlock.jobs").fetchall() == [("mail.send",)]


def test_operators_neither_edit_nor_enqueue_nor_delete(app: Rowlock, db: Db) -> None:
    job = put(db)

    with browsing(Dashboard(app, auth=lambda _request: Visitor("olga", "operator"))) as browser:
        answers = [
            browser.act(f"/jobs/{job}/edit", args="{}"),
            browser.act("/jobs/enqueue", task="t"),
            browser.act(f"/jobs/{job}/delete"),
        ]

    assert [answer.status_code for answer in answers] == [403] * 3
    assert app.jobs.events() == ()


def test_what_is_to_do_has_its_button_where_the_page_can_do_it(client: Browser, app: Rowlock, db: Db) -> None:
    job = put(db, queue="mail")
    app.queues.pause("mail", why="new templates", by="ben")

    page = client.get(f"/jobs/{job}").text

    assert "Resume queue mail" in page
    assert "Resume task" not in page


@pytest.mark.parametrize(("role", "has_button"), [("viewer", False), ("operator", True)])
def test_what_a_button_does_is_not_said_as_a_command_too(app: Rowlock, db: Db, role: Role, *, has_button: bool) -> None:
    job = put(db, run_at=datetime(2100, 1, 1, tzinfo=UTC))

    with browsing(Dashboard(app, auth=lambda _request: Visitor("ann", role))) as browser:
        page = browser.get(f"/jobs/{job}").text

    assert ("Run now" in page) is has_button
    assert ("rowlock jobs run-next" in page) is not has_button
