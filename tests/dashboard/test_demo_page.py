"""The demo's page: each button does what it says, to real processes, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from rowlock.dashboard import Visitor
from rowlock.demo.browser import picture
from rowlock.demo.browser.page import STATEMENTS, dashboard_of
from rowlock.demo.browser.picture import JobChip, Picture
from rowlock.demo.browser.sandbox import FLOOD, Sandbox, sandbox
from tests.depth import deep
from tests.waiting import until

_LIMIT = 90.0


class Stage:
    """The demo, and a browser's worth of requests to it."""

    def __init__(self, played: Sandbox, asgi: Any) -> None:  # noqa: ANN401  an ASGI app
        self._played = played
        self._asgi = asgi

    @property
    def picture(self) -> Picture:
        return self._played.picture

    def until(self, seen: str, **wanted: Any) -> Picture:  # noqa: ANN401  fields of a picture
        """Wait for a picture in which these are so: a value, or a test of it."""

        def fits() -> Picture | None:
            picture = self.picture
            for name, value in wanted.items():
                found = getattr(picture, name)
                if not (value(found) if callable(value) else found == value):
                    return None
            return picture

        found = until(fits, what=seen, limit=_LIMIT)
        assert found is not None
        return found

    def state(self, number: int, state: str) -> Picture:
        """Wait until a worker is in this state."""
        return self.until(f"worker {number} {state}", cards=lambda cards: cards[number - 1].state == state)

    def press(self, path: str, **fields: str) -> str:
        """Press a button; answers what it says."""
        answer = asyncio.run(self._request("POST", path, fields))
        assert answer.status_code == 200, answer.text
        says: str = answer.json()["says"]
        return says

    def page(self) -> str:
        return asyncio.run(self._request("GET", "/demo", {})).text

    def refused(self, path: str) -> str:
        answer = asyncio.run(self._request("POST", path, {}))
        assert answer.status_code == 400
        error: str = answer.json()["error"]
        return error

    async def _request(self, method: str, path: str, fields: dict[str, str]) -> httpx.Response:
        transport = httpx.ASGITransport(self._asgi)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            page = await client.get("/demo")
            if method == "GET":
                return page
            headers = {"accept": "application/json", "sec-fetch-site": "same-origin"}
            return await client.post(path, data=fields | {"csrf": client.cookies["rowlock_csrf"]}, headers=headers)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A demo that runs while these tests press its buttons; at its end every job is looked for."""
    with sandbox(tmp_path_factory.mktemp("demo") / "pg") as (played, app):
        yield Stage(played, dashboard_of(app, played, auth=lambda _request: Visitor("ann", "operator")))
        audit = played.close()
        assert audit.is_whole
        assert audit.enqueued > 0


@deep
def test_a_crashed_worker_leaves_ghosts_that_others_rescue_and_finish(stage: Stage) -> None:
    for number in (1, 2, 3):
        stage.state(number, "working")
    stage.until("worker 2 at work", cards=lambda cards: len(cards[1].jobs) >= 2)
    rescued = stage.picture.rescued

    says = stage.press("/demo/workers/2/crash")

    assert "SIGKILL" in says
    dead = stage.state(2, "crashed")
    assert all(job.ghost for job in dead.cards[1].jobs)
    after = stage.until("a rescue", rescued=lambda count: count > rescued)
    stage.until("the end of a ghost", ended=lambda jobs: any(job.rescued for job in jobs))
    assert after.lost == 0
    assert after.cards[1].state == "crashed"


@deep
def test_a_dead_worker_can_be_started_again_and_not_twice(stage: Stage) -> None:
    until(lambda: all(card.state in ("working", "crashed") for card in stage.picture.cards), limit=_LIMIT)
    if stage.picture.cards[1].state != "crashed":
        stage.press("/demo/workers/2/crash")
        stage.state(2, "crashed")

    stage.press("/demo/workers/2/start")

    stage.state(2, "working")
    assert "runs already" in stage.refused("/demo/workers/2/start")


@deep
def test_a_worker_that_is_asked_to_stop_hands_back_and_goes(stage: Stage) -> None:
    stage.state(3, "working")

    stage.press("/demo/workers/3/stop")

    gone = stage.state(3, "stopped")
    assert not any(job.ghost for job in gone.cards[2].jobs)
    assert "start it first" in stage.refused("/demo/workers/3/crash")
    stage.press("/demo/workers/3/start")
    stage.state(3, "working")


@deep
def test_a_flood_is_worked_off(stage: Stage) -> None:
    before = stage.picture.done

    stage.press("/demo/flood")

    after = stage.until("the end of the flood", done=lambda done: done >= before + FLOOD)
    assert after.lost == 0


@deep
def test_a_held_snapshot_stops_nothing(stage: Stage) -> None:
    stage.press("/demo/hold")
    held = stage.until("the snapshot", snapshot=lambda seconds: seconds is not None)

    after = stage.until("work that goes on", done=lambda done: done >= held.done + 10)

    assert after.dead_rows is not None
    stage.press("/demo/release")
    stage.until("its end", snapshot=None)


@deep
def test_a_restart_of_postgres_loses_nothing(stage: Stage) -> None:
    before = stage.picture.done

    stage.press("/demo/restart")

    after = stage.until("work that goes on", done=lambda done: done >= before + 10, postgres="up")
    assert after.lost == 0


@deep
def test_a_checkout_asks_and_goes_on_when_it_is_approved(stage: Stage) -> None:
    stage.press("/demo/checkout")
    asking = stage.until("the question", checkouts=lambda all_: any(one.asks for one in all_))
    order = next(one.order for one in asking.checkouts if one.asks)

    stage.press(f"/demo/orders/{order}", approved="true")

    done = stage.until(
        "its end", checkouts=lambda all_: any(one.order == order and one.status == "succeeded" for one in all_)
    )
    steps = next(one.steps for one in done.checkouts if one.order == order)
    assert steps == (("pick", "done"), ("approval", "done"), ("charge", "done"), ("ship", "done"))


def test_the_stream_can_be_stopped_and_started(stage: Stage) -> None:
    stage.press("/demo/dry")
    stage.until("an empty queue", ready=(), streaming=False)
    enqueued = stage.picture.enqueued

    stage.press("/demo/stream")

    stage.until("new jobs", enqueued=lambda count: count > enqueued)


def test_the_page_tells_the_story_and_shows_the_statements(stage: Stage) -> None:
    page = stage.page()

    assert page.count(">Crash<") + page.count(">Start<") >= 3
    assert 'id="lost">0<' in page
    for name in STATEMENTS:
        assert f"<code>{name}.sql</code>" in page


@deep
def test_there_is_no_fourth_worker(stage: Stage) -> None:
    assert "there are 1 to 3" in stage.refused("/demo/workers/4/crash")


@pytest.mark.parametrize(("others", "says"), [(True, "Another worker takes them back now."), (False, "Nobody lives")])
def test_nobody_is_said_to_take_jobs_back_where_nobody_lives(others: bool, says: str) -> None:  # noqa: FBT001
    ghost = JobChip(id="1", task="t", state="running", ghost=True, rescued=False, retried=0)

    assert says in picture.says_of("crashed", (ghost,), 0.0, others=others)
