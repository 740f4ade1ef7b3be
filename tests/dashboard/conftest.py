"""The dashboard as a browser meets it, over HTTP, on a database of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import playwright.sync_api
import psycopg
import pytest

from rowlock import Rowlock
from rowlock.dashboard import Dashboard, Visitor
from tests.dashboard.browser import Browser, browsing
from tests.dashboard.chromium import Shop, Tab, furnished, started, tab
from tests.dashboard.shop import app as app_of_shop
from tests.rows import Db

Act = Callable[..., httpx.Response]


@pytest.fixture
def client(app: Rowlock) -> Iterator[Browser]:
    """A browser of ann, who is an admin."""
    with browsing(Dashboard(app, auth=lambda _request: Visitor("ann", "admin"))) as browser:
        yield browser


@pytest.fixture
def act(client: Browser) -> Act:
    """Sends a form: `act("/queues/pause", queue="mail", why="…")`; answers JSON, as our scripts are answered."""
    return client.act


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.sync_api.Browser]:
    """A real Chromium. Of a module: while Playwright's loop is there, this process can run no other."""
    with started() as browser:
        yield browser


@pytest.fixture(scope="session")
def shop() -> Iterator[Shop]:
    """A furnished shop with workers and a dashboard, for all tests of this process: each works on jobs of its own."""
    with furnished() as shop:
        yield shop


@pytest.fixture
def books(shop: Shop) -> Iterator[Db]:
    """A connection to the shop's database, on which a test enqueues what it enqueues."""
    with psycopg.connect(shop.url, autocommit=True) as db, app_of_shop.within(db):
        yield db


@pytest.fixture
def admin(browser: playwright.sync_api.Browser, shop: Shop) -> Iterator[Tab]:
    """A tab of an admin in the shop."""
    with tab(browser, shop.link) as opened:
        yield opened
