"""The demo in a real Chromium: the Crash button crashes, ghosts are rescued, and the counter of the lost stays 0."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.dashboard.chromium import needs_chromium, program, tab
from tests.dashboard.test_browser import judged, picture
from tests.depth import deep

pytestmark = [needs_chromium, deep]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The link that the demo prints."""
    folder: Path = tmp_path_factory.mktemp("demo") / "pg"
    with program("rowlock", "demo", "--no-open", "--port", "0", str(folder)) as link:
        yield link


def test_a_click_crashes_a_worker_and_its_jobs_are_finished_by_others(browser: Browser, demo: str) -> None:
    with tab(browser, demo) as opened:
        page = opened.page
        expect(page).to_have_title("Demo · Rowlock")
        for number in (1, 2, 3):
            page.wait_for_selector(f"#worker-{number}.working")
        page.wait_for_selector("#worker-2 .chip.running")

        page.locator("#worker-2").get_by_role("button", name="Crash").click()

        page.wait_for_selector("#worker-2.crashed")
        assert "SIGKILL" in opened.toast()
        page.evaluate("document.querySelector('.toasts').replaceChildren()")  # it would stand before the table
        picture(page, "demo")
        page.wait_for_selector(".lane .chip.rescued.succeeded")
        expect(page.locator("#lost")).to_have_text("0")
        page.locator("#worker-2").get_by_role("button", name="Start").click()
        page.wait_for_selector("#worker-2.working")


def test_every_other_button_does_what_it_says(browser: Browser, demo: str) -> None:
    with tab(browser, demo) as opened:
        page = opened.page
        page.wait_for_selector("#worker-1.working")

        for name, says in (
            ("Start a checkout", "will ask for approval"),
            ("Hold a snapshot open", "is held open"),
            ("Flood the queue", "are in the queue"),
            ("Let go of the snapshot", "let go"),
            ("Restart PostgreSQL", "is up again"),
            ("Stop the stream", "No more jobs"),
            ("Let jobs stream in", "stream in again"),
        ):
            page.get_by_role("button", name=name).click()
            assert says in opened.toast()
        page.get_by_role("button", name="Approve").first.click()
        assert "approved" in opened.toast()
        expect(page.locator(".checkout .state.succeeded")).to_be_visible()
        page.locator("#worker-3").get_by_role("button", name="Stop").click()
        page.wait_for_selector("#worker-3.stopped")
        expect(page.locator("#lost")).to_have_text("0")


def test_everybody_can_read_the_demo(browser: Browser, demo: str) -> None:
    for dark in (False, True):
        with tab(browser, demo, dark=dark) as opened:
            opened.page.wait_for_selector("#worker-1")
            opened.page.locator(".live").click()  # it must hold still to be judged

            assert judged(opened.page) == []
