"""Who looks, in a real Chromium: logging in and out, what a viewer and an operator see, and no JavaScript at all."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboard import shop as goods
from tests.dashboard.books import fresh, said
from tests.dashboard.chromium import Shop, Tab, needs_chromium, tab
from tests.depth import deep
from tests.rows import Db

pytestmark = [needs_chromium, deep]

PAGES = ("/", "/jobs", "/queues", "/workers", "/schedules", "/workflows", "/database", "/audit")
# Send a form as a page of ours would, whether or not the page shows it.
_POST = """async (path) => {
    const csrf = document.querySelector("[name=csrf]").value;
    const answer = await fetch(path, {
        method: "POST", body: new URLSearchParams({ csrf }), headers: { accept: "application/json" },
    });
    return [answer.status, (await answer.json()).error];
}"""


@pytest.fixture
def plain(browser: Browser, shop: Shop) -> Iterator[Page]:
    """A page of an admin whose browser runs no scripts."""
    base, _, token = shop.link.partition("#")
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(base)
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        yield page
    finally:
        context.close()


def test_the_theme_stays_as_it_was_chosen(admin: Tab) -> None:
    page = admin.go("/")
    theme = page.locator("html")
    expect(theme).to_have_attribute("data-theme", "light")

    page.get_by_role("button", name="Light or dark").click()
    expect(theme).to_have_attribute("data-theme", "dark")

    admin.go("/jobs")
    expect(theme).to_have_attribute("data-theme", "dark")


def test_who_logs_out_needs_the_token_again(admin: Tab, shop: Shop) -> None:
    page = admin.go("/")

    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login")
    admin.go("/jobs?state=failed")
    expect(page).to_have_url(re.compile("/login"))
    page.get_by_label("Token").fill("open sesame, which is not it")
    with admin.refused(401):
        page.get_by_role("button", name="Log in").click()

    expect(page.get_by_role("alert")).to_have_text("This token is not valid here. Check that you copied all of it.")
    page.get_by_label("Token").fill(shop.link.partition("#")[2])
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/jobs?state=failed")


def test_a_viewer_looks_and_no_more(browser: Browser, shop: Shop, books: Db) -> None:
    job = goods.resize.using(queue=fresh("window")).enqueue(4)
    waits = goods.checkout.enqueue(1008, 1, 900_00)
    with tab(browser, shop.viewer) as opened:
        acts = [
            path
            for path in (*PAGES, f"/jobs/{job.id}", f"/workflows/{waits.id}", "/schedules/stock.sync")
            if opened.go(path).locator("main form[method=post], main dialog form, main [data-tick]").count()
        ]
        page = opened.go(f"/jobs/{job.id}")
        expect(page.get_by_role("region", name="Arguments")).to_contain_text("hidden from viewers")
        with opened.refused(403):
            answer = page.evaluate(_POST, f"/jobs/{job.id}/cancel")

    assert acts == []
    assert answer == [403, "this needs the role operator; yours is viewer"]
    assert said(books, job.id) == "ready"


def test_an_operator_cancels_and_does_not_delete(browser: Browser, shop: Shop, books: Db) -> None:
    job = goods.resize.using(queue=fresh("counter")).enqueue(5)
    with tab(browser, shop.operator) as opened:
        page = opened.go(f"/jobs/{job.id}")
        expect(page.get_by_role("region", name="Arguments")).to_contain_text('"photo": 5')
        expect(page.get_by_role("button", name=re.compile("Delete|Edit|Enqueue"))).to_have_count(0)
        with opened.refused(403):
            answer = page.evaluate(_POST, f"/jobs/{job.id}/delete")
        assert answer == [403, "this needs the role admin; yours is operator"]
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel", exact=True).click()
        opened.toast()
        expect(page.get_by_role("region", name="Events")).to_contain_text("operator cancelled job")

    assert said(books, job.id) == "cancelled"


def test_without_scripts_every_page_shows(plain: Page, shop: Shop) -> None:
    base = shop.link.partition("/login")[0]

    for path in PAGES:
        plain.goto(base + path)
        title = path.strip("/").capitalize() or "Overview"
        expect(plain.get_by_role("heading", level=1)).to_have_text("Database health" if title == "Database" else title)
        expect(plain.locator("main")).not_to_be_empty()


def test_without_scripts_a_form_is_answered_by_a_page(plain: Page, shop: Shop, books: Db) -> None:
    base, queue = shop.link.partition("/login")[0], fresh("shelf")
    job = goods.resize.using(queue=queue).enqueue(6)
    other = goods.resize.using(queue=queue).enqueue(7)
    plain.goto(f"{base}/jobs/{job.id}")

    plain.get_by_role("button", name="Run next").click()

    expect(plain.get_by_role("heading", level=1)).to_have_text("Done")
    expect(plain.get_by_text("The job runs next.")).to_be_visible()
    plain.get_by_role("link", name="Look at it").click()
    expect(plain.get_by_role("region", name="Events")).to_contain_text("admin let run next")
    plain.goto(f"{base}/jobs?queue={queue}")
    plain.get_by_label(f"Tick job {other.id}").check()
    plain.get_by_role("button", name="Cancel").click()
    expect(plain.get_by_role("heading", level=1)).to_have_text("Cancel: 1 job")
    plain.get_by_role("button", name="Cancel 1").click()
    expect(plain.get_by_text("1 job is cancelled.")).to_be_visible()
    assert [said(books, one.id) for one in (job, other)] == ["ready", "cancelled"]
