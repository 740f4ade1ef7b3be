"""Names and values that mean harm, on every page of a real Chromium: nothing of it runs, and nothing even tries to."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from rowlock.dashboard.render import segment
from tests.dashboard.chromium import Tab, needs_chromium, program, tab
from tests.dashboard.corpus import PAYLOADS, Filled, fill
from tests.depth import deep
from tests.rows import Db

pytestmark = [needs_chromium, deep]

# What is on a page that no template of ours has put there, once our scripts have morphed it. uPlot alone has styles.
_STRANGE = """async () => {
    const main = document.querySelector('script[src$="/main.js"]').src;
    await (await import(main.replace("main.js", "live.js"))).refresh();
    const ours = (url) => !url || new URL(url, location.href).origin === location.origin;
    const strange = [...document.querySelectorAll("*")].filter((one) =>
        one.matches("iframe, object, embed, base, meta[http-equiv], style, script:not([src]), [srcdoc]")
        || one.matches("[style]:not([data-chart] *)")
        || [...one.attributes].some((attribute) => attribute.name.startsWith("on"))
        || ["src", "href", "action", "formaction", "xlink:href"].some((name) => !ours(one.getAttribute(name))));
    return [...strange.map((one) => one.outerHTML.slice(0, 200)), ...blocked];
}"""
_PAGES = ("/", "/jobs?limit=200", "/queues", "/workers", "/schedules", "/workflows", "/database", "/audit")


@pytest.fixture
def filled(db: Db) -> Filled:
    """A database with each of them in every field, and some jobs that hold all of them."""
    filled = Filled()
    for text in PAYLOADS:
        fill(db, text, filled)
    return fill(db, "\n".join(PAYLOADS)[:400], filled, name=PAYLOADS[0], data="\n".join(PAYLOADS))


@pytest.fixture
def opened(browser: Browser, url: str) -> Iterator[Tab]:
    """A tab of an admin."""
    with program("rowlock", "dashboard", "--url", url, "--port", "0") as link, tab(browser, link) as opened:
        yield opened


def strange(page: Page) -> list[str]:
    """What harm was done to a page."""
    expect(page.locator(".live")).to_have_attribute("data-state", "live")
    return list(page.evaluate(_STRANGE))


def test_nothing_that_means_harm_is_anything_but_text(opened: Tab, filled: Filled) -> None:
    filters = [f"/jobs?{urlencode({'queue': text, 'task': text, 'tag': text})}" for text in PAYLOADS[:8]]
    details = [
        *(f"/jobs/{job}" for job in filled.jobs[-8:]),
        *(f"/workflows/{workflow}" for workflow in filled.workflows[-2:]),
        *(f"/schedules/{segment(name)}" for name in filled.schedules if name[:3] in ("</s", "a/b", "{{7")),
        f"/?queue={quote(filled.queues[0])}&task={quote(filled.tasks[0])}",
        f"/audit?actor={quote(PAYLOADS[0])}",
    ]

    found = {path: harm for path in (*_PAGES, *filters, *details) if (harm := strange(opened.go(path)))}

    assert found == {}


def test_scripts_of_ours_write_names_as_text(opened: Tab, filled: Filled) -> None:
    queue = "<script>alert(1)</script>"
    assert queue in filled.queues
    page = opened.go(f"/queues?named={quote(queue)}")

    page.locator("button[data-dialog=pause-queue]").first.click()
    expect(page.get_by_role("dialog").get_by_role("heading")).to_contain_text(queue)
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()

    assert queue in opened.toast()
    page = opened.go(f"/jobs?{urlencode({'queue': queue})}")
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.locator("#preview")).to_contain_text(queue)
    page.locator("#preview [data-leave]").click()
    assert strange(page) == []


def test_what_does_run_is_noticed(opened: Tab) -> None:
    page = opened.go("/jobs")

    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=\"data:,\" onerror=\"alert(1)\">')")

    assert any("script-src" in one for one in strange(page))
    assert any("Content Security Policy" in one for one in opened.errors)
    opened.errors.clear()
