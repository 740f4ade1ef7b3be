"""Every action that changes something says in the audit who did it and why, in whatever name a visitor has."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from rowlock import Rowlock
from rowlock.dashboard import Dashboard, Visitor
from rowlock.dashboard.actions import ACTIONS
from tests.dashboard.browser import browsing
from tests.depth import deep_unless
from tests.rows import Db, put
from tests.workflow.remembering import end, put_failure, put_step, put_workflow

WHO = "Ann <ann@example.org> \u202e'; drop table x"
WHY = "because <b>it</b> must"

Given = Callable[[Rowlock, Db], tuple[str, dict[str, Any]]]


def job(state: str, verb: str, **fields: object) -> Given:
    """A verb on one job by its path."""
    return lambda _app, db: (f"/jobs/{put(db, state)}/{verb}", fields)


def jobs(state: str, verb: str, **fields: object) -> Given:
    """A verb on those that were ticked."""
    return lambda _app, db: (f"/jobs/{verb}", {"ids": str(put(db, state)), **fields})


def paused(verb: str, **named: str) -> Given:
    """What is paused already, if it is to be resumed."""

    def given(app: Rowlock, _db: Db) -> tuple[str, dict[str, Any]]:
        if verb.endswith("resume"):
            [(noun, name)] = named.items()
            (app.queues if noun == "queue" else app.tasks).pause(name, by="ben")
        return verb, named

    return given


def schedule(verb: str, **fields: object) -> Given:
    """A schedule that an operator has added."""

    def given(app: Rowlock, _db: Db) -> tuple[str, dict[str, Any]]:
        app.schedules.add("nightly", app.call("report"), "0 3 * * *", by="ben")
        if verb == "resume":
            app.schedules.pause("nightly", by="ben")
        return f"/schedules/{verb}", {"name": "nightly", **fields}

    return given


def edited(app: Rowlock, db: Db) -> tuple[str, dict[str, Any]]:
    """A schedule that code declares, and that an operator has edited."""
    schedule("edit")(app, db)
    declared = {"name": "nightly", "cron": "0 3 * * *", "task": "report", "args": "{}"}
    db.execute("update rowlock.schedules set declared = %s", [json.dumps(declared)])
    app.schedules.edit("nightly", queue="mail", by="ben")
    return "/schedules/reset", {"name": "nightly"}


def waiting(verb: str, **fields: object) -> Given:
    return lambda _app, db: (f"/workflows/{put_workflow(db, 'waiting')}/{verb}", fields)


def failed(verb: str, **fields: object) -> Given:
    def given(_app: Rowlock, db: Db) -> tuple[str, dict[str, Any]]:
        one = put_workflow(db)
        put_step(db, one, "charge")
        put_step(db, one, "ship", at=2, state="failed", error={"type": "E", "message": "no"})
        put_failure(db, one, "ship", at=4)
        end(db, one, "failed")
        return f"/workflows/{one}/{verb}", fields

    return given


CHANGES: dict[str, tuple[str, Given]] = {
    "/jobs/retry": ("retried", jobs("failed", "retry")),
    "/jobs/cancel": ("cancelled", jobs("ready", "cancel")),
    "/jobs/run_next": ("run_next", jobs("ready", "run_next")),
    "/jobs/move": ("moved", jobs("ready", "move", to="mail")),
    "/jobs/reprioritise": ("reprioritised", jobs("ready", "reprioritise", priority=3)),
    "/jobs/delete": ("deleted", jobs("failed", "delete")),
    "/jobs/{id}/retry": ("retried", job("failed", "retry")),
    "/jobs/{id}/cancel": ("cancelled", job("ready", "cancel")),
    "/jobs/{id}/run_next": ("run_next", job("ready", "run_next")),
    "/jobs/{id}/move": ("moved", job("ready", "move", to="mail")),
    "/jobs/{id}/reprioritise": ("reprioritised", job("ready", "reprioritise", priority=3)),
    "/jobs/{id}/delete": ("deleted", job("failed", "delete")),
    "/jobs/{id}/edit": ("edited", job("ready", "edit", args='{"x": 1}')),
    "/jobs/enqueue": ("enqueued", lambda _app, _db: ("/jobs/enqueue", {"task": "t", "args": "{}"})),
    "/queues/pause": ("paused", paused("/queues/pause", queue="mail", anyway="1")),
    "/queues/resume": ("resumed", paused("/queues/resume", queue="mail")),
    "/tasks/pause": ("paused", paused("/tasks/pause", task="t", anyway="1")),
    "/tasks/resume": ("resumed", paused("/tasks/resume", task="t")),
    "/schedules/run": ("run_now", schedule("run")),
    "/schedules/pause": ("paused", schedule("pause")),
    "/schedules/resume": ("resumed", schedule("resume")),
    "/schedules/edit": ("edited", schedule("edit", queue="mail")),
    "/schedules/reset": ("edited", edited),
    "/schedules/add": (
        "added",
        lambda _app, _db: ("/schedules/add", {"name": "weekly", "rule": "0 3 * * 1", "task": "report"}),
    ),
    "/schedules/remove": ("removed", schedule("remove")),
    "/workflows/{id}/signal": ("signalled", waiting("signal", name="paid", text="1")),
    "/workflows/{id}/cancel": ("cancelled", waiting("cancel")),
    "/workflows/{id}/terminate": ("terminated", waiting("terminate")),
    "/workflows/{id}/retry": ("retried", failed("retry")),
    "/workflows/{id}/fork": ("forked", failed("fork", step="ship")),
}
NO_CHANGE = {
    "/orders/{id}/stop": "what was done so far has its events; the rest was not done",
    "/database/measure": "what it makes it undoes",
}


def test_every_action_is_in_this_table() -> None:
    assert {action.path for action in ACTIONS} == CHANGES.keys() | NO_CHANGE.keys()


@pytest.mark.parametrize("path", deep_unless(lambda path: path.startswith(("/jobs", "/queues")), CHANGES))
def test_an_action_leaves_its_visitors_name_and_reason(path: str, app: Rowlock, db: Db) -> None:
    kind, given = CHANGES[path]
    target, fields = given(app, db)
    db.execute("delete from rowlock.events")

    with browsing(Dashboard(app, auth=lambda _request: Visitor(WHO, "admin"))) as browser:
        answer = browser.act(target, why=WHY, **fields)

    assert answer.status_code == 200, answer.text
    written = db.execute("select kind, actor, details ->> 'why' from rowlock.events").fetchall()
    assert set(written) == {(kind, WHO, WHY)}
