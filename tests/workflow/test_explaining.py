"""Explain: what a workflow waits for, what to do about it, and what becomes of one that is undone or does not fit."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, NoReturn
from uuid import uuid4

import pytest

from rowlock import Job, Retry, Rowlock
from rowlock.testing import drain
from rowlock.workflow.context import Context
from tests.rows import Db
from tests.worker.working import one
from tests.workflow.playing import DAY, HOUR, ONCE
from tests.workflow.test_changes import began, deploy, renamed

# What anybody may see of a step.
_STEP = ("workflow_id", "step_key", "name", "kind", "state", "attempts", "until", "child", "started_at")
LATER = Retry(attempts=3, base=HOUR, cap=HOUR)


async def fine() -> str:
    return "fine"


async def declined() -> NoReturn:
    raise ConnectionError("the bank is down\nand this is the small print")


async def waiting(ctx: Context, waits: str) -> None:
    ctx.undo(fine)
    match waits:
        case "signal":
            await ctx.signal("approve")
        case "signal in time":
            await ctx.any(ctx.signal("approve", timeout=HOUR), ctx.sleep(DAY))
        case "sleep":
            await ctx.sleep(DAY)
        case "retry":
            await ctx.using(name="charge").step(declined)
        case "undo":
            ctx.using(name="refund").undo(declined)
            raise ValueError("no")
        case _:
            ctx.using(name="refund", retry=ONCE).undo(declined)
            raise ValueError("no")


@pytest.fixture
def app(app: Rowlock) -> Rowlock:
    """An app with a workflow that waits for whatever it is told to, and one that waits for its children."""
    app.workflow(name="w", retry=LATER, fails_on=ValueError)(waiting)

    @app.task(name="label", queue="slow")
    async def label(number: int) -> None: ...

    @app.workflow(name="parent")
    async def parent(ctx: Context, children: int) -> None:
        if children == 1:
            await ctx.run(label.using(delay=DAY).bind(0))
        else:
            await ctx.map([label.using(delay=DAY * number).bind(number) for number in range(children)])

    return app


def begun(app: Rowlock, waits: str) -> Job[Any]:
    """A workflow that has begun, and waits for this."""
    job: Job[Any] = app.enqueue("w", waits=waits)
    drain(app)
    return job


def test_it_waits_for_a_signal_which_can_be_sent(app: Rowlock) -> None:
    job = begun(app, "signal")
    app.signal(job, "aprove")
    drain(app)  # every signal has it look

    found = job.explain()

    assert (found.state, found.code) == ("parked", "signal")
    assert re.fullmatch(r"It waits for signal 'approve' since \S+Z \(.*\)\.", found.says)
    assert found.do == f"send it: `rowlock workflows signal {job.id} approve`"
    assert (found.facts["signal"], found.facts["until"]) == ("approve", None)
    assert "It was also sent 'aprove', which it does not wait for now." in found.also
    assert found.unknown == {}


def test_it_waits_for_the_first_of_several_and_until_when(app: Rowlock) -> None:
    job = begun(app, "signal in time")

    found = job.explain()

    assert (found.state, found.code) == ("parked", "signal")
    assert ", until " in found.says
    assert found.facts["until"] - found.facts["since"] == HOUR
    assert found.also[0].startswith("It sleeps until ")


def test_it_sleeps(app: Rowlock) -> None:
    job = begun(app, "sleep")

    found = job.explain()

    assert (found.code, found.do) == ("sleeping", None)
    assert re.fullmatch(r"It sleeps until .* \(in 24 h\)\.", found.says)
    assert timedelta(0) <= DAY - (found.facts["until"] - found.at) < HOUR


def test_it_waits_for_a_child_which_can_be_explained_too(app: Rowlock, db: Db) -> None:
    job: Job[Any] = app.enqueue("parent", children=1)
    drain(app)
    child = one(db, "select id from rowlock.jobs where parent = %s", job.id)

    found, of_the_child = job.explain(), app.jobs.explain(child)

    assert (found.state, found.code, found.says) == ("parked", "children", f"It waits for child {child}.")
    assert found.do == f"look at the child: `rowlock explain {child}`"
    assert of_the_child.code == "delayed"
    assert f"It is a child of workflow {job.id}: `rowlock explain {job.id}`." in of_the_child.also


def test_it_waits_for_some_of_its_children(app: Rowlock, db: Db) -> None:
    job: Job[Any] = app.enqueue("parent", children=3)
    drain(app)  # the first of them, too
    left = [str(row[0]) for row in db.execute("select id from rowlock.jobs where parent = %s", [job.id])]

    found = job.explain()

    assert found.says.startswith("It waits for 2 of 3 children: ")
    assert all(child in found.says for child in left)
    assert (found.facts["children"], found.facts["open"]) == (3, 2)


def test_a_step_is_tried_again_and_what_it_failed_of_is_said(app: Rowlock) -> None:
    job = begun(app, "retry")

    found = job.explain()

    assert (found.state, found.code) == ("parked", "retrying")
    assert found.says.startswith("Its step 'charge' is tried again at ")
    assert found.says.endswith(", after 1 failed try: ConnectionError: the bank is down.")
    assert found.facts["step"] == "charge"


def test_one_that_is_cancelled_while_it_waits_says_that_it_is_undone_first(app: Rowlock) -> None:
    job = begun(app, "signal")
    job.cancel(by="ada", why="double order")

    found = job.explain()
    drain(app)
    ended = job.explain()

    assert (found.state, found.code) == ("ready", "cancelling")
    assert found.says.startswith("It will end as cancelled, as ada asked at ")
    assert found.says.endswith(": double order; what it has done is undone first.")
    assert ended.code == "cancelled"


def test_one_that_has_failed_says_that_it_is_undone_and_what_holds_that_up(app: Rowlock) -> None:
    job = begun(app, "undo")

    found = job.explain()

    assert (found.state, found.code) == ("parked", "undoing")
    assert found.says == "It has failed, and what it has done is being undone before it ends."
    assert found.also[0].startswith("Its undo 'undo/refund' is tried again at ")


def test_one_that_has_failed_for_good_says_what_is_left_of_it(app: Rowlock) -> None:
    job = begun(app, "undo that fails")

    found = job.explain()

    assert found.code == "failed"
    assert "because its code raised an error that it did not catch: ValueError: no" in found.says
    assert found.says.endswith("; it could not be undone: undo/refund.")
    assert f"`rowlock workflows retry {job.id}`" in (found.do or "")


def test_one_that_is_woken_says_so(app: Rowlock) -> None:
    job = begun(app, "signal")
    app.signal(job, "approve")

    found = job.explain()

    assert found.state == "ready"
    assert "It was parked, and is awake: signal 'approve' has come." in found.also


def test_code_that_has_changed_is_shown_with_the_difference_and_what_to_do(url: str, db: Db) -> None:
    with deploy(url, began) as right:
        job = right.enqueue("w")
        drain(right)
    with deploy(url, renamed) as changed:
        changed.signal(job, "go")
        drain(changed)

        found = changed.jobs.explain(job.id)

    assert (found.state, found.code) == ("waiting", "changed")
    assert found.says.startswith("Its code has changed since it began: at call 1 the code calls step 'alpha', and")
    assert (found.do or "").startswith("deploy the code that it began with, or give the changed code a new version=")
    assert "`rowlock workflows check --app MODULE`" in (found.do or "")


def test_a_migration_that_fails_is_named(url: str) -> None:
    with deploy(url, began) as right:
        job = right.enqueue("w")
        drain(right)
        right.signal(job, "go")
    with Rowlock(url) as newer:

        @newer.workflow(name="w", version=2)
        async def second(ctx: Context) -> None: ...

        @second.migration(1)
        def carry(state: dict[str, Any]) -> dict[str, Any]:
            raise KeyError("order")

        drain(newer)

        found = newer.jobs.explain(job.id)

    assert found.code == "fault"
    assert found.says.startswith(
        "The state of version 1 could not be carried over to version 2: KeyError: 'order'. Nothing has failed or is "
    )


def test_a_role_that_may_not_read_users_data_is_told_all_but_the_errors(app: Rowlock, db: Db, url: str) -> None:
    name = f"viewer_{uuid4().hex}"
    for said in (
        f"create role {name} login",
        f"grant usage on schema rowlock to {name}",
        f"grant execute on function rowlock.now(), rowlock.shown_state, rowlock.unfolded(uuid, json) to {name}",
        f"grant select on rowlock.pauses, rowlock.workers, rowlock.events, rowlock.signals, rowlock.keys to {name}",
        f"grant select ({', '.join(_STEP)}) on rowlock.workflow_steps to {name}",
        f"grant select on rowlock.jobs, rowlock.history to {name}",
    ):
        db.execute(said.encode())
    job = begun(app, "retry")

    with Rowlock(re.sub(r"//[^@/]*@", f"//{name}@", url)) as limited:
        found = limited.jobs.explain(job.id)

    assert found.code == "retrying"
    assert found.says.endswith(", after 1 failed try.")
    assert list(found.unknown) == ["errors of steps"]


def test_one_that_runs_has_no_attempts_of_its_own_to_count(app: Rowlock) -> None:
    seen: list[str] = []

    @app.workflow(name="looking")
    async def looking(ctx: Context) -> None:
        found = await app.jobs.aexplain(ctx.id)
        seen.append(found.says)
        seen.extend(found.also)

    looking.enqueue()
    drain(app)

    assert seen
    assert "attempt" not in " ".join(seen)
