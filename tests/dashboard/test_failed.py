"""Pages that cannot be loaded: those that may come back are loaded again, the others are not."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from rowlock import Rowlock
from rowlock.dashboard import Dashboard, Visitor
from rowlock.dashboard import app as dashboards
from tests.dashboard.browser import OURS, Browser, browsing


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


def test_a_page_that_is_not_there_is_not_loaded_again(client: Browser) -> None:
    page = client.get("/nothing-here")

    assert page.status_code == 404
    assert "data-retry" not in page.text
