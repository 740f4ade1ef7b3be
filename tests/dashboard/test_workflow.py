"""The page /workflows/{id}: its timeline, the forms by which it is answered, and what can be done to it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from rowlock import Context, Rowlock
from rowlock.dashboard import Dashboard, Role, Visitor
from rowlock.testing import drain
from tests.dashboard.browser import Browser, browsing
from tests.dashboard.conftest import Act
from tests.rows import Db, put
from tests.worker.working import one
from tests.workflow.remembering import (
    MORNING,
    end,
    is_live,
    keys_of,
    put_failure,
    put_signal,
    put_step,
    put_workflow,
    row_of,
)

STRANGE = 'a <i>c</i> ?x=1&y "q" \N{RIGHT-TO-LEFT OVERRIDE}z'
APPROVAL = {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}
REVIEW = {
    "type": "object",
    "properties": {
        "verdict": {"enum": ["approve", "refuse"]},
        "by": {"type": "string", "maxLength": 20},
        "cents": {"type": "integer", "minimum": 1},
        "due": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
    },
    "required": ["verdict", "by", "cents"],
}


def asking(db: Db, form: object = APPROVAL, **columns: Any) -> UUID:  # noqa: ANN401  whatever a column takes
    """A workflow that waits for a signal of this form."""
    job = put_workflow(db, "waiting", **columns)
    put_step(db, job, "charge", at=1, value="receipt 7", input=[7])
    put_step(db, job, "approval", at=3, took=None, kind="signal", form=form)
    return job


def words(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def unquoted(text: str) -> str:
    return text.replace("&#34;", '"')


def sent(db: Db) -> list[tuple[Any, ...]]:
    return db.execute("select job, name, payload from rowlock.signals order by job, number").fetchall()


def events(db: Db) -> list[tuple[Any, ...]]:
    return db.execute("select kind, job, actor, details ->> 'why' from rowlock.events order by at, id").fetchall()


# What it shows


def test_it_says_what_was_done_step_by_step(client: Browser, db: Db) -> None:
    job = put_workflow(db, "waiting", key="order:7", args={"order": 7})
    put_step(db, job, "charge", at=1, took=2, input=[7], value="receipt 7", attempts=2)
    put_step(db, job, "1/price", at=3, took=1)
    put_step(db, job, "2/price", at=3, took=2)
    put_step(db, job, "2/1/quote", at=4, took=1)
    put_step(db, job, "sleep", at=6, took=60, kind="sleep")
    put_step(db, job, "label", at=70, took=None, kind="child", child=uuid4())

    answer = (client.get(f"/workflows/{job}")).text

    timeline = words(answer.partition('id="timeline-title"')[2])
    assert re.search(r"charge 2 failed tries 2\.0 s", timeline)
    assert re.findall(r"branch [0-9/]+", timeline) == ["branch 1/", "branch 2/", "branch 2/1/"]
    assert re.search(r"sleep 60 s", timeline)
    assert "label child" in timeline
    assert "receipt 7" in timeline
    assert answer.count('class="p-tried"') == 3  # two of them, and one in the legend
    assert 'class="p-sleep"' in answer


def test_a_child_and_a_parent_are_linked(client: Browser, db: Db) -> None:
    parent = put_workflow(db, "waiting", waits_for="children")
    child = put_workflow(db, task="child", parent=parent)
    put_step(db, parent, "child", took=None, kind="child", child=child)

    assert f'href="/jobs/{child}"' in (client.get(f"/workflows/{parent}")).text
    assert f'href="/workflows/{parent}"' in (client.get(f"/workflows/{child}")).text


def test_what_failed_and_what_was_undone_is_there_when_it_has_ended(client: Browser, db: Db) -> None:
    job = put_workflow(db)
    put_step(db, job, "ship", at=1, state="failed", attempts=3, error={"type": "OSError", "message": "no van"})
    put_failure(db, job, "ship", at=3)
    put_step(db, job, "undo/refund", at=4, kind="undo", attempts=1)
    put_step(db, job, "undo/release", at=5, kind="undo", state="failed", attempts=5)
    end(db, job, "failed", reason="raised; could not be undone: undo/release")

    text = (client.get(f"/workflows/{job}")).text

    undone = words(text.partition('id="undo-title"')[2].partition("</section>")[0])
    assert "refund undone, 1 failed try" in undone
    assert "release could not be undone, 5 failed tries" in undone
    assert "OSError : no van" in words(text)
    assert 'class="p-undo"' in text


def test_a_workflow_that_was_cancelled_is_not_said_to_have_failed(client: Browser, db: Db) -> None:
    job = put_workflow(db)
    put_failure(db, job, None, at=3)
    put_step(db, job, "undo/refund", at=4, kind="undo")
    end(db, job, "cancelled", reason="cancelled")

    text = words(client.get(f"/workflows/{job}").text)

    assert "the workflow was cancelled" in text
    assert "failed " not in text.partition("Timeline")[2].partition("Arguments")[0].replace("failed try", "")


def test_a_signal_is_shown_with_the_step_that_has_taken_it(client: Browser, db: Db) -> None:
    job = put_workflow(db, "waiting")
    put_step(db, job, "go", at=0, took=5, kind="signal")
    put_step(db, job, "go#2", at=5, took=5, kind="signal")
    put_signal(db, job, "go", 1, payload={"n": 1}, taken_at=MORNING + timedelta(seconds=5), key="form 1")
    put_signal(db, job, "go", 2, payload={"n": 2}, taken_at=MORNING + timedelta(seconds=10))
    put_signal(db, job, "stray", 3, payload="hello")

    live = client.get(f"/workflows/{job}").text
    end(db, job, "succeeded")
    ended = client.get(f"/workflows/{job}").text

    for text in (live, ended):
        table = words(text.partition('id="signals-title"')[2].partition("</table>")[0])
        assert re.search(
            r'go key form 1 \{ "n": 1 \} .+ go go \{ "n": 2 \} .+ go#2 stray "hello" .+ none', unquoted(table)
        )
    facts = (client.get(f"/api/workflows/{job}")).json()["signals"]
    assert [(one["received"]["signal"]["payload"], one["step"]) for one in facts] == [
        ({"n": 1}, "go"),
        ({"n": 2}, "go#2"),
        ("hello", None),
    ]


def test_a_long_timeline_is_folded_and_can_be_walked_through(client: Browser, db: Db) -> None:
    job = put_workflow(db)
    db.execute(
        """
        insert into rowlock.steps (job, key, position, kind, state, value, started_at, ended_at)
        select %s, 'page#' || n, n, 'step', 'done', to_json(n), %s::timestamptz + n * interval '1 second',
            %s::timestamptz + n * interval '1 second' + interval '500 ms'
        from generate_series(1, 1000) as n
        """,
        [job, MORNING, MORNING],
    )

    seen: set[str] = set()
    text = (client.get(f"/workflows/{job}")).text
    ends = re.findall(r'title="(page#\d+)"', text)
    address = f"/workflows/{job}?skip=40"
    while address:
        text = (client.get(address)).text
        seen |= set(re.findall(r'title="(page#\d+)"', text))
        more = re.search(r'<a href="([^"]+)">[\d,]+ lines more: show them', text)
        address = more[1] if more else ""

    assert (ends[0], ends[-1], len(ends)) == ("page#1", "page#1000", 300)
    assert seen | set(ends) == {f"page#{number}" for number in range(1, 1001)}


def test_a_value_that_is_too_large_is_named_and_not_sent(client: Browser, db: Db) -> None:
    job = put_workflow(db)
    put_step(db, job, "read", value="x" * 500_000, input=["small"])

    answer = client.get(f"/workflows/{job}")

    assert len(answer.text) < 60_000
    assert "Its result is too large for this page" in answer.text
    assert "small" in answer.text


def test_a_workflow_that_has_not_begun_says_so(client: Browser, db: Db) -> None:
    job = put_workflow(db, claims=0)

    text = (client.get(f"/workflows/{job}")).text

    assert "No steps yet" in text
    assert "It has not begun, and ends at once." in text


def test_a_plain_job_is_shown_on_its_own_page(client: Browser, db: Db) -> None:
    job = put(db)

    answer = client.get(f"/workflows/{job}")

    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{job}")


@pytest.mark.parametrize(("job", "status"), [(uuid4(), 404), ("seven", 400)])
def test_what_is_not_there_is_answered_by_a_sentence(client: Browser, job: object, status: int) -> None:
    assert (client.get(f"/workflows/{job}")).status_code == status


def test_names_of_any_kind_are_shown_as_they_are(client: Browser, db: Db) -> None:
    form = {"type": "object", "properties": {STRANGE: {"type": "string", "title": STRANGE}}, "description": STRANGE}
    job = put_workflow(db, "waiting", task=STRANGE, queue=STRANGE, key=STRANGE, args={STRANGE: STRANGE}, reason=STRANGE)
    put_step(
        db, job, f"1/{STRANGE}", input=[STRANGE], value={STRANGE: STRANGE}, error={"type": STRANGE, "message": STRANGE}
    )
    put_step(db, job, STRANGE, took=None, kind="signal", form=form)
    put_signal(db, job, STRANGE, payload=STRANGE, key=STRANGE)

    answer = client.get(f"/workflows/{job}")

    assert answer.status_code == 200
    assert "<i>" not in answer.text
    assert "style=" not in answer.text


# Answering


def test_an_approval_is_one_click(client: Browser, act: Act, db: Db) -> None:
    job = asking(db)
    text = (client.get(f"/workflows/{job}")).text
    form = text.partition('class="answer"')[2].partition("</form>")[0]

    fields = dict(re.findall(r'<input type="hidden" name="(name|step)" value="([^"]*)">', form))
    name, value = re.findall(r'<button name="([^"]+)" value="([^"]+)" class="primary">Approve', form)[0]
    answer = act(f"/workflows/{job}/signal", **fields, **{name: value})

    assert "<textarea" not in form
    assert answer.json()["says"] == "Signal 'approval' is sent."
    assert sent(db) == [(job, "approval", {"approved": True})]
    assert events(db) == [("signalled", job, "ann", None)]
    assert row_of(db, job, "state") == ("ready",)


def test_what_was_answered_is_not_asked_for_again_while_nobody_has_taken_it(client: Browser, act: Act, db: Db) -> None:
    job = asking(db)

    act(f"/workflows/{job}/signal", name="approval", step="approval", **{"answers.approved": "true"})

    text = client.get(f"/workflows/{job}").text
    assert "It has come" in text
    assert 'class="answer"' not in text


def test_a_double_click_is_one_answer(act: Act, db: Db) -> None:
    job = asking(db)
    fields = {"name": "approval", "step": "approval", "answers.approved": "true"}

    act(f"/workflows/{job}/signal", **fields)
    again = act(f"/workflows/{job}/signal", **fields | {"answers.approved": "false"})

    assert again.json()["says"] == "Signal 'approval' was sent before; nothing was sent again."
    assert sent(db) == [(job, "approval", {"approved": True})]
    assert len(events(db)) == 1


def test_the_form_has_a_field_for_each_member(client: Browser, act: Act, db: Db) -> None:
    job = asking(db, REVIEW)

    text = (client.get(f"/workflows/{job}")).text
    answer = act(
        f"/workflows/{job}/signal",
        name="approval",
        step="approval",
        **{"answers.verdict": '"refuse"', "answers.by": "ann", "answers.cents": "120", "answers.due": ""},
    )

    inputs = dict(re.findall(r'<input id="ask[^"]+" name="answers\.(\w+)"[^>]+?type="(\w+)"', text))
    assert inputs == {"by": "text", "cents": "number", "due": "date"}
    assert re.findall(r'<button name="answers.verdict"[^>]+>(\w+)<', text) == ["Approve", "Refuse"]
    assert answer.status_code == 200
    assert sent(db) == [(job, "approval", {"verdict": "refuse", "by": "ann", "cents": 120})]


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"answers.verdict": '"refuse"', "answers.cents": "1"}, "by is missing"),
        ({"answers.verdict": '"maybe"', "answers.by": "a", "answers.cents": "1"}, "verdict must be one of"),
        ({"answers.verdict": '"refuse"', "answers.by": "a", "answers.cents": "0"}, "cents must be at least 1"),
        ({"answers.verdict": '"refuse"', "answers.by": "a", "answers.cents": "x"}, "must be a whole number"),
        ({"text": '{"verdict": "refuse"}'}, "by is missing; cents is missing"),
        ({"text": "{"}, "is no JSON"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_in_words(act: Act, db: Db, fields: dict[str, str], fault: str) -> None:
    job = asking(db, REVIEW)

    answer = act(f"/workflows/{job}/signal", name="approval", step="approval", **fields)

    assert answer.status_code == 400
    assert fault in answer.json()["error"]
    assert sent(db) == []
    assert events(db) == []


def test_what_was_answered_or_timed_out_meanwhile_is_not_answered_again(act: Act, db: Db) -> None:
    job = asking(db)
    db.execute("update rowlock.steps set state = 'done', ended_at = rowlock.now() where key = 'approval'")

    answer = act(f"/workflows/{job}/signal", name="approval", step="approval", **{"answers.approved": "true"})

    assert answer.status_code == 409
    assert "does not wait for 'approval' any more" in answer.json()["error"]
    assert sent(db) == []


def test_a_signal_of_any_name_can_be_sent(act: Act, db: Db) -> None:
    job = asking(db)

    act(f"/workflows/{job}/signal", name="hurry", text='{"by": "ann"}', why="it is late")
    act(f"/workflows/{job}/signal", name="empty")

    assert sent(db) == [(job, "hurry", {"by": "ann"}), (job, "empty", None)]
    assert events(db) == [("signalled", job, "ann", "it is late"), ("signalled", job, "ann", None)]


def test_programs_send_values_as_they_are(app: Rowlock, db: Db) -> None:
    job = asking(db, {"type": "string"})
    with browsing(Dashboard(app, auth=lambda _request: Visitor("robot", "operator"))) as browser:
        headers = {"authorization": "Bearer x"}
        wrong = browser.post(f"/api/workflows/{job}/signal", json={"name": "approval", "payload": 7}, headers=headers)
        right = browser.post(f"/api/workflows/{job}/signal", json={"name": "approval", "payload": "7"}, headers=headers)

    assert (wrong.status_code, right.status_code) == (400, 200)
    assert sent(db) == [(job, "approval", "7")]


def test_an_ended_workflow_takes_no_signal(act: Act, db: Db) -> None:
    job = put_workflow(db)
    end(db, job, "succeeded")

    answer = act(f"/workflows/{job}/signal", name="go")

    assert answer.status_code == 409
    assert "takes no more signals" in answer.json()["error"]


def test_an_approval_brings_a_real_workflow_to_its_end(client: Browser, act: Act, app: Rowlock, db: Db) -> None:
    @app.workflow(name="buy")
    async def buy(ctx: Context) -> str:
        return "bought" if await ctx.signal("may I", schema=bool) else "left"

    job = buy.enqueue()
    drain(app)
    text = (client.get(f"/workflows/{job.id}")).text
    act(f"/workflows/{job.id}/signal", name="may I", step="may I", **{"answers.": "true"})
    drain(app)

    assert re.findall(r'<button name="answers\." value="(\w+)"[^>]*>(\w+)<', text) == [("true", "Yes"), ("false", "No")]
    assert job.result() == "bought"


# Doing


def test_cancel_says_that_it_undoes_first(client: Browser, act: Act, db: Db) -> None:
    job = asking(db)

    text = (client.get(f"/workflows/{job}")).text
    answer = act(f"/workflows/{job}/cancel", why="changed her mind")

    assert "It undoes first" in text
    assert answer.json()["says"] == "It is being cancelled: a worker undoes first what it has done."
    assert one(db, "select cancel_at is not null from rowlock.jobs where id = %s", job)
    assert events(db) == [("cancelled", job, "ann", "changed her mind")]
    assert "cancelling" in (client.get(f"/workflows/{job}")).text


def test_what_has_not_begun_is_cancelled_at_once_and_what_has_ended_is_not(act: Act, db: Db) -> None:
    fresh, ended = put_workflow(db, claims=0), put_workflow(db)
    end(db, ended, "succeeded")

    first, second = act(f"/workflows/{fresh}/cancel"), act(f"/workflows/{ended}/cancel")

    assert first.json()["says"] == "It is cancelled."
    assert second.json()["says"] == "Too late: it has ended as succeeded."


def test_retry_goes_on_from_the_step_that_has_failed(client: Browser, act: Act, db: Db) -> None:
    job = put_workflow(db)
    put_step(db, job, "charge", at=1)
    put_step(db, job, "ship", at=2, state="failed", attempts=3)
    put_failure(db, job, "ship", at=4)
    end(db, job)

    text = (client.get(f"/workflows/{job}")).text
    answer = act(f"/workflows/{job}/retry", why="the van is back")

    assert "It continues from the step that failed" in text
    assert answer.json()["says"] == "It goes on after 1 step."
    assert is_live(db, job)
    assert keys_of(db, job) == ["charge"]
    assert events(db) == [("retried", job, "ann", "the van is back")]


def test_what_was_undone_starts_from_the_beginning(client: Browser, act: Act, db: Db) -> None:
    job = put_workflow(db)
    put_step(db, job, "charge", at=1)
    put_failure(db, job, "charge", at=4)
    put_step(db, job, "undo/refund", at=5, kind="undo")
    end(db, job)

    text = (client.get(f"/workflows/{job}")).text
    answer = act(f"/workflows/{job}/retry")

    assert "Some steps were undone, so it starts again from the beginning" in text
    assert answer.json()["says"] == "It starts from the beginning."


def test_what_cannot_be_retried_is_told_why(act: Act, db: Db) -> None:
    live, good, lost = put_workflow(db), put_workflow(db), put_workflow(db, key="k")
    end(db, good, "succeeded")
    end(db, lost)
    db.execute("delete from rowlock.keys")
    put(db, key="k")

    says = [(act(f"/workflows/{job}/retry")).json()["says"] for job in (live, good, lost)]

    assert says == [
        "It has not ended; it is ready.",
        "It has succeeded, and there is nothing to retry.",
        "It was not retried: another job has its key 'k' now.",
    ]


def test_fork_goes_on_from_a_step_in_a_new_job(client: Browser, act: Act, db: Db) -> None:
    job = put_workflow(db, args={"order": 7, "gift": False})
    put_step(db, job, "charge", at=1)
    put_step(db, job, "pack", at=2)
    put_step(db, job, "ship", at=3)
    end(db, job, "succeeded")

    answer = act(f"/workflows/{job}/fork", step="pack", args='{"gift": true}', version="2", why="a present")

    new = UUID(answer.json()["facts"]["id"])
    assert answer.json()["to"] == f"/workflows/{new}"
    assert keys_of(db, new) == ["charge"]
    assert row_of(db, new, "args", "version") == ({"order": 7, "gift": True}, 2)
    assert {(kind, actor, why) for kind, _, actor, why in events(db)} == {("forked", "ann", "a present")}
    assert f"/workflows/{new}" in (client.get(f"/workflows/{job}")).text


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"step": "pay"}, "from_step='pay' is not a step of workflow"),
        ({"step": "charge", "args": "[1]"}, "args must be a JSON object"),
        ({"step": "charge", "args": "{"}, "args is no JSON"),
        ({"step": "charge", "version": "0"}, "version"),
        ({}, "step: Field required"),
    ],
)
def test_a_fork_that_cannot_be_is_refused_in_words(act: Act, db: Db, fields: dict[str, str], fault: str) -> None:
    job = asking(db)

    answer = act(f"/workflows/{job}/fork", **fields)

    assert answer.status_code == 400
    assert fault in answer.json()["error"]
    assert one(db, "select count(*) from rowlock.jobs") == 1


# Who may


VIEWER: set[str] = set()
OPERATOR = {"signal", "cancel", "retry"}


@pytest.mark.parametrize(("role", "may"), [("viewer", VIEWER), ("operator", OPERATOR), ("admin", OPERATOR | {"fork"})])
def test_roles_see_and_do_what_is_theirs(app: Rowlock, db: Db, role: Role, may: set[str]) -> None:
    job = asking(db)
    with browsing(Dashboard(app, auth=lambda _request: Visitor("bob", role))) as browser:
        text = (browser.get(f"/workflows/{job}")).text
        answers = {
            verb: browser.act(f"/workflows/{job}/{verb}", name="x", step="charge" if verb == "fork" else None)
            for verb in ("retry", "signal", "fork", "cancel")
        }

    assert {verb for verb, answer in answers.items() if answer.status_code != 403} == may
    assert {verb for verb in ("signal", "cancel", "fork") if f'id="{verb}"' in text} == may - {"retry"}
    assert ('class="answer"' in text) == (role != "viewer")


def test_a_viewer_sees_what_happens_and_nothing_that_was_said(app: Rowlock, db: Db) -> None:
    job = asking(db, args={"card": "visa 4711"}, workflow_state='{"at": "Hauptstrasse 3"}')
    put_signal(db, job, "stray", payload="from ann")
    with browsing(Dashboard(app, auth=lambda _request: Visitor("bob", "viewer"))) as browser:
        text = (browser.get(f"/workflows/{job}")).text

    assert "charge" in text
    assert "stray" in text
    assert "Hidden from viewers." in text
    assert not any(said in text for said in ("4711", "receipt 7", "Hauptstrasse", "from ann"))


def test_it_works_without_scripts(client: Browser, db: Db) -> None:
    job = asking(db)
    client.get(f"/workflows/{job}")
    fields = {
        "csrf": client.csrf,
        "name": "approval",
        "step": "approval",
        "answers.approved": "true",
    }

    answer = client.post(f"/workflows/{job}/signal", data=fields, headers={"sec-fetch-site": "same-origin"})

    assert "Signal &#39;approval&#39; is sent." in answer.text
    assert f'href="/workflows/{job}"' in answer.text
    assert len(sent(db)) == 1
