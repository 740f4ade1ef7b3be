"""What surrounds every page: its navigation, and what stands there when the page cannot be loaded."""

from __future__ import annotations

import re
from datetime import timedelta

import psycopg
import pytest

from rowlock import Rowlock
from rowlock.dashboard import Dashboard, Visitor
from rowlock.dashboard import app as dashboards
from rowlock.dashboard.pages import PAGES
from tests.dashboard.browser import OURS, Browser, browsing
from tests.rows import Db, put


def test_a_page_behind_a_table_lock_is_loaded_again(app: Rowlock, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboards, "STATEMENT_TIMEOUT", timedelta(milliseconds=50))
    with (
        browsing(Dashboard(app, auth=lambda _request: Visitor("ann", "admin"))) as browser,
        psycopg.connect(url) as holder,
    ):
        holder.execute("lock table rowlock.jobs in access exclusive mode")

        page = browser.get("/jobs")

    assert page.status_code == 504
    assert "data-retry" in page.text
    assert "This page keeps trying" in page.text


def test_a_page_without_a_database_is_loaded_again_and_a_form_is_not() -> None:
    nowhere = Rowlock("postgresql://nobody@127.0.0.1:1/nothing")
    with browsing(Dashboard(nowhere, auth=lambda _request: Visitor("ann", "admin"))) as browser:
        page = browser.get("/queues")
        form = browser.post("/queues/pause", data={"queue": "mail", "csrf": browser.csrf}, headers=OURS)

    assert (page.status_code, form.status_code) == (503, 503)
    assert "data-retry" in page.text
    assert "data-retry" not in form.text


def test_a_page_stands_under_its_entry_of_the_navigation(client: Browser, db: Db) -> None:
    job = put(db)

    current = {
        path: re.findall(r'<a href="([^"]+)"[^>]*aria-current="page">', client.get(path).text.partition("</nav>")[0])
        for path in ("/", "/jobs", f"/jobs/{job}", "/jobs/preview?verb=retry", "/audit", "/licences", "/nothing-here")
    }

    assert [*current.values()] == [["/"], ["/jobs"], ["/jobs"], ["/jobs"], ["/audit"], [], []]


def test_every_entry_of_the_navigation_has_a_key_and_the_help_lists_them(client: Browser) -> None:
    page = client.get("/").text

    keys = dict(re.findall(r'<a href="([^"]+)" data-key="(.)"', page))
    listed = re.findall(r"<kbd>(.)</kbd>", page[page.index("<kbd>g</kbd> then") :].partition("</dt>")[0])

    assert keys == {page.path: page.key for page in PAGES if page.nav == page.name}
    assert len(set(keys.values())) == 8
    assert listed == ["g", *keys.values()]


def test_a_page_that_is_not_there_is_not_loaded_again(client: Browser) -> None:
    page = client.get("/nothing-here")

    assert page.status_code == 404
    assert "data-retry" not in page.text
