"""Pages of jobs whose arguments are as large as they may be: bounded, and drawn beside the event loop."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import Any

from rowlock import Rowlock
from rowlock.dashboard import Dashboard, Visitor
from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.excerpt import MOST_SHOWN, Excerpt, ExcerptBudget
from rowlock.dashboard.page import DashboardPage, Params
from tests.dashboard.browser import Browser, browsing
from tests.rows import Db, put

LARGE = {"orders": [{"number": number, "note": "to be left with a neighbour " * 20} for number in range(1_200)]}


def job(db: Db) -> str:
    """A failed job with 700 KB of arguments, ten errors and a message without end."""
    errors = [
        {"type": "ValueError", "message": "no " * 5_000, "attempt": number, "worker": None}
        | {"started_at": None, "ended_at": None, "traceback": "line\n" * 1_000}
        for number in range(1, 11)
    ]
    made = put(db, "failed")
    db.execute(
        "update rowlock.history set args = %s, errors = %s::json[] where id = %s",
        [json.dumps(LARGE), [json.dumps(error) for error in errors], made],
    )
    return str(made)


def test_a_list_neither_reads_arguments_nor_more_than_the_beginning_of_the_last_error(client: Browser, db: Db) -> None:
    job(db)

    listed = client.get("/api/jobs")
    [found] = listed.json()["jobs"]
    preview = client.get("/api/jobs/preview?verb=retry")

    assert (found["args"], [len(error["message"]) for error in found["errors"]]) == (None, [400])
    assert (found["errors"][0]["type"], found["errors"][0]["traceback"]) == ("ValueError", "")
    assert max(len(listed.content), len(preview.content)) < 10_000


def test_the_page_of_a_job_shows_the_beginning_and_the_api_all_of_it(client: Browser, db: Db) -> None:
    made = job(db)

    page = client.get(f"/jobs/{made}")
    whole = client.get(f"/api/jobs/{made}")

    assert page.status_code == 200, page.text
    assert len(page.text) < 600_000
    assert "Only the beginning is shown." in page.text
    assert f'href="/api/jobs/{made}" download' in page.text
    assert whole.json()["job"]["args"] == LARGE


def test_what_is_cut_has_no_part_of_a_secret_at_its_end() -> None:
    address = "postgresql://ada:s3cr3tpassword@db/shop"
    begins = [ExcerptBudget().fit({"a": "x " * 9_975 + " " * shift + address + " x" * 99}) for shift in range(40)]

    assert {type(one) for one in begins} == {Excerpt}
    assert [one for one in begins if one.endswith("postgresql://ada:")]
    assert not [one for one in begins if "s3cr" in one]


def test_many_values_share_the_room_of_a_page() -> None:
    room = ExcerptBudget()

    shown = [room.fit(LARGE) for _ in range(100)]

    assert len(shown[0]) == MOST_SHOWN
    assert sum(map(len, shown)) < 300_000
    assert room.fit({"order": 17}) == {"order": 17}


def test_pages_are_drawn_beside_the_event_loop(app: Rowlock) -> None:
    threads: list[str] = []

    class Told(dict[str, Any]):
        def items(self) -> Any:  # noqa: ANN401  a dict's own kind
            threads.append(threading.current_thread().name)
            return super().items()

    @dataclass(frozen=True)
    class Shown:
        facts: dict[str, str]

    async def load(_context: RequestContext, _params: Params) -> Shown:
        return Shown(Told(a="b"))

    page = DashboardPage("done", "/more", Params, Shown, load, says="More.")
    with browsing(Dashboard(app, auth=lambda _request: Visitor("ann", "admin"), pages=[page])) as browser:
        assert browser.get("/api/more").json() == {"facts": {"a": "b"}}

    assert threads
    assert {name.rpartition("_")[0] for name in threads} == {"rowlock-dashboard"}
