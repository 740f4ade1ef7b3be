"""A page that is open while the database, or the dashboard itself, goes away: it says so, and comes back by itself."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Browser, expect

from rowlock import Rowlock
from tests.dashboard.chromium import needs_chromium, program, tab
from tests.depth import deep
from tests.faults.servers import Cluster

pytestmark = needs_chromium


@deep
def test_an_open_page_says_what_is_away_and_comes_back(browser: Browser, tmp_path: Path) -> None:
    with Cluster(tmp_path / "pg") as cluster, ExitStack() as stack:
        Rowlock(cluster.url).migrate()
        served = stack.enter_context(ExitStack())
        link = served.enter_context(program("rowlock", "dashboard", "--url", cluster.url, "--port", "0"))
        opened = stack.enter_context(tab(browser, link))
        page = opened.go("/queues")
        banner, live = page.locator(".banner"), page.locator(".live")
        expect(live).to_have_attribute("data-state", "live")
        expect(banner).to_be_hidden()

        deaf = page.context.new_page()
        deaf.clock.install()
        deaf.add_init_script("window.EventSource = class extends EventTarget { close() {} }")  # nothing ever comes
        deaf.goto(opened.base + "/queues")
        expect(deaf.locator(".banner")).to_be_hidden()
        deaf.clock.fast_forward(26_000)
        expect(deaf.locator(".banner")).to_contain_text("Nothing has come from it for 25 seconds")
        expect(deaf.locator("main")).to_have_class("is-stale")
        deaf.close()

        cluster.stop()
        expect(banner).to_be_visible()
        expect(banner).to_contain_text("The database does not respond.")
        expect(banner).to_contain_text("what is shown here is from")
        expect(page.locator("main")).to_have_class("is-stale")
        other = page.context.new_page()
        other.goto(opened.base + "/workers")
        expect(other.get_by_role("alert")).to_contain_text("keeps trying")

        cluster.start()
        expect(banner).to_be_hidden()
        expect(page.locator("main")).not_to_have_class("is-stale")
        expect(other.get_by_role("heading", name="Workers")).to_be_visible()

        other.close()
        served.close()
        expect(banner).to_contain_text("The dashboard does not respond.")
        opened.errors.clear()  # the browser says on its console what it could not reach
        page.close()
