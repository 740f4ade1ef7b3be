"""Every page in a real Chromium: no error on the console, readable by everybody, and pictures for the docs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, expect

from tests.dashboard import shop as goods
from tests.dashboard.books import becomes, fresh, said
from tests.dashboard.chromium import ROOT, Shop, Tab, needs_chromium, tab
from tests.depth import deep
from tests.rows import Db

pytestmark = needs_chromium

PHONE = (390, 844)
PAGES = ("/", "/jobs", "/queues", "/workers", "/schedules", "/workflows", "/database", "/audit")
_PICTURES = Path(os.environ.get("ROWLOCK_PICTURES", ROOT / ".cache" / "pictures"))
_ELSEWHERE = """(root) => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const text = texts.currentNode;
        if (text.data.includes(root)) text.data = text.data.replaceAll(root, "/srv/shop");
    }
}"""


@pytest.fixture
def page(browser: Browser, shop: Shop) -> Iterator[Tab]:
    """A tab on the shop's dashboard."""
    with tab(browser, shop.link) as opened:
        yield opened


def picture(page: Page, name: str, *, whole: bool = False) -> None:
    """Take a picture for the docs; where this project lies is nobody's business."""
    _PICTURES.mkdir(parents=True, exist_ok=True)
    page.evaluate(_ELSEWHERE, str(ROOT))
    page.screenshot(path=_PICTURES / f"{name}.png", full_page=whole)


def drawn(page: Page) -> Page:
    """A page whose charts, if it has any, have drawn themselves."""
    for chart in page.locator("[data-chart]").all():
        chart.locator("canvas").wait_for()
    return page


def judged(page: Page) -> list[str]:
    """What axe finds wrong: labels, order, contrast, roles."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['help']}: {[node['html'][:160] for node in one['nodes'][:3]]}" for one in found]


def first_link(page: Page, prefix: str) -> str:
    """The first link of the page's tables that leads there."""
    href = page.locator(f'main tbody a[href^="{prefix}"]').first.get_attribute("href")
    assert href is not None
    return href


def every_page(opened: Tab) -> list[str]:
    """Every page: also those of a schedule, of jobs and workflows that go well and that do not, and an empty one."""
    jobs = [first_link(opened.go(f"/jobs?state={state}"), "/jobs/") for state in ("failed", "running", "waiting")]
    workflows = [first_link(opened.go(f"/workflows?status={one}"), "/workflows/") for one in ("parked", "failed")]
    schedule = first_link(opened.go("/schedules"), "/schedules/")
    return [*PAGES, *jobs, *workflows, schedule, "/jobs/preview?verb=move&queue=default", "/jobs?queue=nowhere"]


def dialogs(page: Page) -> Iterator[str]:
    """Open what can be opened, one after the other; answers what each is called."""
    for summary in page.locator("main details:not([open]) > summary").all():
        if summary.is_visible():
            summary.click()
    yield "details"
    for opener in page.locator("main [data-dialog]").all()[:8]:
        if opener.is_visible():
            opener.click()
            yield opener.inner_text()
            page.keyboard.press("Escape")


@deep
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_everybody_can_read_every_page(browser: Browser, shop: Shop, *, dark: bool) -> None:
    with tab(browser, shop.link, dark=dark) as opened:
        wrong = {path: found for path in every_page(opened) if (found := judged(opened.go(path)))}

    assert wrong == {}


@deep
def test_everybody_can_read_what_opens_on_a_phone(browser: Browser, shop: Shop) -> None:
    with tab(browser, shop.link, size=PHONE) as opened:
        job = first_link(opened.go("/jobs?tag=campaign:autumn"), "/jobs/")
        workflow = first_link(opened.go("/workflows?status=parked"), "/workflows/")
        wrong = [
            (path, name, found)
            for path in (job, workflow, "/queues", "/schedules/reports.nightly")
            for name in dialogs(opened.go(path))
            if (found := judged(opened.page))
        ]

    assert wrong == []


@deep
def test_every_page_fits_a_phone(browser: Browser, shop: Shop) -> None:
    with tab(browser, shop.link, size=PHONE) as opened:
        too_wide = []
        for path in every_page(opened):
            page = opened.go(path)
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                too_wide.append(path)
        picture(opened.go("/"), "phone")

    assert too_wide == []


@deep
def test_keys_lead_everywhere(page: Tab) -> None:
    shown = page.go("/")

    for key, heading in zip("jqwsfdao", (*PAGES[1:], "/"), strict=True):
        shown.keyboard.press("g")
        shown.keyboard.press(key)
        shown.wait_for_url(page.base + heading)
    shown.keyboard.press("?")
    expect(shown.locator("#keys")).to_be_visible()
    shown.keyboard.press("Escape")
    before = shown.locator("html").get_attribute("data-theme")
    shown.keyboard.press("t")
    expect(shown.locator("html")).not_to_have_attribute("data-theme", str(before))
    page.go("/jobs").keyboard.press("/")
    expect(shown.locator("[data-search]")).to_be_focused()


@deep
def test_a_tab_that_nobody_sees_lets_go_of_its_stream(page: Tab) -> None:
    shown = page.go("/jobs")
    expect(shown.locator(".live")).to_have_attribute("data-state", "live")

    shown.evaluate(
        """() => {
            Object.defineProperty(document, "hidden", { value: true, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )

    expect(shown.locator(".live")).to_have_attribute("data-state", "paused")
    shown.evaluate(
        """() => {
            Object.defineProperty(document, "hidden", { value: false, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    expect(shown.locator(".live")).to_have_attribute("data-state", "live")


def test_times_are_the_readers_or_utc_if_they_say_so(browser: Browser, shop: Shop) -> None:
    with tab(browser, shop.link, zone="Asia/Kathmandu") as opened:  # 5 h 45 min ahead of UTC, all year
        page = drawn(opened.go("/"))
        page.get_by_text("The same as a table").click()
        row, chart = page.locator("#data tbody time").first, page.locator("#chart-throughput .when")
        moment = datetime.fromisoformat(str(row.get_attribute("datetime")))

        def shows(ahead: timedelta) -> None:
            expect(row).to_have_text(f"{moment + ahead:%H:%M}")
            expect(chart).to_contain_text(f"{moment + ahead:%H:%M}")

        shows(timedelta(hours=5, minutes=45))
        page.get_by_role("button", name="Local", exact=True).click()
        shows(timedelta(0))
        assert "UTC" in str(row.get_attribute("title"))
        assert "Asia/Kat" in str(row.get_attribute("title"))
        opened.go("/jobs")  # it is kept
        expect(page.get_by_role("button", name="UTC")).to_be_visible()


def test_what_is_typed_and_what_a_mark_says_is_in_the_readers_zone_too(browser: Browser, shop: Shop, books: Db) -> None:
    order = goods.deliver.enqueue(7)
    with tab(browser, shop.link, zone="Asia/Kathmandu") as opened:
        books.execute(
            "insert into rowlock.firings values (%s, now() - interval '1 hour', null, %s, now())",
            ["stock.sync", "overlap"],
        )
        page = opened.go("/schedules/stock.sync")
        title = page.locator("svg.firings title").first
        moment = datetime.fromisoformat(str(title.get_attribute("data-at"))) + timedelta(hours=5, minutes=45)
        assert f"{moment:%H:%M}" in str(title.text_content())

        page = opened.go(f"/workflows/{order.id}")
        field = page.get_by_label("At")
        expect(field.locator("xpath=..")).to_contain_text("in the time of Asia/Kat")
        field.fill("2031-03-01T08:00")
        page.get_by_role("button", name="Send").click()

        becomes(books, order.id, "succeeded")
    assert said(books, order.id, "result") == "order 7 at 2031-03-01T02:15:00+00:00"


def test_rows_of_jobs_are_low_on_a_small_screen(browser: Browser, shop: Shop, books: Db) -> None:
    made = goods.resize.using(tags=["schedule:photos.nightly", "slot:2031-03-01T03:30:00Z"]).enqueue(1)
    with tab(browser, shop.link, size=(1280, 800)) as opened:
        page = opened.go("/jobs?tag=schedule:photos.nightly&queue=default")
        row = page.locator(f"#job-{made.id}")
        expect(row.locator(".tag")).to_have_count(2)
        heights = page.locator("table.jobs tbody tr").evaluate_all("rows => rows.map(row => row.offsetHeight)")
        queue = row.locator("td.queue a")
        lines = queue.evaluate("link => link.getClientRects().length")

    assert max(heights) <= 60
    assert lines == 1


def test_a_phone_shows_where_one_is_and_how_to_log_out(browser: Browser, shop: Shop) -> None:
    with tab(browser, shop.link, size=PHONE) as opened:
        page = opened.go("/jobs")
        box = page.locator("table.jobs tbody input[type=checkbox]").first.bounding_box()
        expect(page.get_by_role("button", name="Log out")).to_be_in_viewport()
        for path in ("/jobs", "/audit"):  # the last of the navigation, too, which scrolls
            expect(opened.go(path).locator(".nav a[aria-current]")).to_be_in_viewport(ratio=0.9)

    assert box is not None
    assert min(box["width"], box["height"]) >= 22


def test_a_long_reason_takes_three_lines_of_a_list(browser: Browser, shop: Shop, books: Db) -> None:
    queue, why = fresh("attic"), "the roof leaks and " * 50
    books.execute("insert into rowlock.pauses values ('queue', %s, null, %s, 'ann', now())", [queue, why])
    books.execute(
        "insert into rowlock.events (kind, actor, details) "
        "values ('paused', 'ann', json_build_object('queue', %s::text, 'why', %s::text))",
        [queue, why],
    )
    with tab(browser, shop.link) as opened:
        lines = {
            path: opened.go(path)
            .locator(f'[title*="{why.strip()}"]')
            .evaluate("text => text.offsetHeight / parseFloat(getComputedStyle(text).lineHeight)")
            for path in ("/", f"/queues?named={queue}", "/audit?kind=paused")
        }

    assert [path for path, count in lines.items() if not 2.5 < count < 3.5] == [], lines


def test_all_that_a_browser_loads_is_small() -> None:
    static = ROOT / "src" / "rowlock" / "dashboard" / "static"

    assert sum(path.stat().st_size for path in static.iterdir()) < 200_000


@deep
def test_the_pictures_of_the_docs(browser: Browser, shop: Shop) -> None:
    with ExitStack() as stack:
        light = stack.enter_context(tab(browser, shop.link))
        dark = stack.enter_context(tab(browser, shop.link, dark=True))
        for name, path in (("overview", "/"), ("jobs", "/jobs"), ("workers", "/workers"), ("schedules", "/schedules")):
            picture(drawn(light.go(path)), name)
        page = light.go(first_link(light.go("/jobs?state=failed&task=payments.charge"), "/jobs/"))
        picture(page, "job")
        page = light.go(first_link(light.go("/workflows?status=failed"), "/workflows/"))
        picture(page, "workflow")
        for name, path in (("overview-dark", "/"), ("database", "/database")):
            picture(drawn(dark.go(path)), name)

    assert {path.stem for path in _PICTURES.glob("*.png")} >= {"overview", "jobs", "job", "workflow", "database"}
