"""What people do with queues, schedules, workflows and the database, clicked in a real Chromium in a shop at work."""

from __future__ import annotations

import re
from uuid import uuid4

from playwright.sync_api import Locator, Page, expect

from tests.dashboard import shop as goods
from tests.dashboard.books import becomes, fresh, said
from tests.dashboard.chromium import Tab, needs_chromium
from tests.depth import deep
from tests.rows import Db

pytestmark = [needs_chromium, deep]

# How much of a canvas is drawn upon.
_DRAWN = """(canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let drawn = 0;
    for (let at = 3; at < data.length; at += 4) drawn += data[at] > 0;
    return drawn;
}"""


def asked(page: Page, opener: str) -> Locator:
    """Press a button that asks first; answers its dialog."""
    page.get_by_role("button", name=opener, exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    return dialog


def confirm(dialog: Locator, verb: str, *, why: str | None = None) -> None:
    if why is not None:
        dialog.get_by_label("Why").fill(why)
    dialog.get_by_role("button", name=verb, exact=True).click()


def pauses(books: Db, name: str) -> list[tuple[object, ...]]:
    return books.execute("select actor, reason from rowlock.pauses where name = %s", [name]).fetchall()


# Overview


def test_the_overview_draws_what_was_done_and_leads_on(admin: Tab) -> None:
    page = admin.go("/")
    page.locator("#charts canvas").first.wait_for()

    drawn = [canvas.evaluate(_DRAWN) for canvas in page.locator("#charts canvas").all()]

    assert min(drawn) > 500
    spans = page.get_by_role("navigation", name="Span")
    for words in ("6 hours", "24 hours", "1 hour"):
        spans.get_by_role("link", name=words).click()
        expect(spans.locator("[aria-current]")).to_have_text(words)
        page.locator("#charts canvas").first.wait_for()
    page.get_by_text("The same as a table").click()
    expect(page.locator("#data tbody tr").first).to_be_visible()
    page.get_by_role("region", name="By queue").get_by_role("link", name="mail", exact=True).click()
    page.wait_for_url("**/?*queue=mail*")
    page.get_by_role("link", name="Not only queue mail").click()
    page.get_by_role("link", name="Jobs of queue mail").click()
    page.wait_for_url("**/jobs?queue=mail")
    expect(page.locator("table.jobs tbody tr").first).to_be_visible()


# Queues and tasks


def test_a_queue_is_paused_with_a_reason_and_resumed(admin: Tab, books: Db) -> None:
    queue = fresh("kiosk")
    goods.resize.using(queue=queue).enqueue(1)
    page = admin.go(f"/queues?named={queue}")

    dialog = asked(page, f"Pause {queue}")
    expect(dialog.get_by_role("heading")).to_have_text(f"Pause the queue {queue}")
    dialog.get_by_label("For how long").select_option("1 hour")
    confirm(dialog, "Pause", why="the shutter is stuck")

    assert admin.toast().startswith(f"Queue {queue} is paused for 60 min: what runs goes on")
    row = page.get_by_role("row").filter(has_text=queue)
    expect(row).to_contain_text("the shutter is stuck")
    assert pauses(books, queue) == [("admin", "the shutter is stuck")]
    page.get_by_role("button", name=f"Resume {queue}").click()
    assert admin.toast() == f"Queue {queue} goes on."
    expect(row).not_to_contain_text("shutter")
    assert pauses(books, queue) == []


def test_jobs_of_a_paused_task_are_set_aside_until_it_is_resumed(admin: Tab, books: Db) -> None:
    task = "mail.send_receipt"
    page = admin.go(f"/queues?named={task}")

    confirm(asked(page, f"Pause {task}"), "Pause", why="the templates change")
    assert admin.toast().startswith(f"Task {task} is paused until somebody resumes it")
    receipt = goods.send_receipt.enqueue(7, "ann@example.com")
    becomes(books, receipt.id, "waiting")
    page.get_by_role("button", name=f"Resume {task}").click()

    assert admin.toast() == f"Task {task} goes on."
    expect(page.get_by_role("button", name=f"Pause {task}")).to_be_visible()
    becomes(books, receipt.id, "succeeded")


# Schedules


def test_a_schedule_is_run_now_paused_and_resumed(admin: Tab, books: Db) -> None:
    page = admin.go("/schedules?named=stock.sync")
    made = "select count(*) from rowlock.firings where schedule = 'stock.sync' and reason = 'asked'"
    before = books.execute(made.encode()).fetchone()

    page.get_by_role("button", name="Run now stock.sync").click()
    assert admin.toast() == "Schedule stock.sync has made a job."
    confirm(asked(page, "Pause stock.sync"), "Pause", why="stock-taking")
    assert admin.toast() == "Schedule stock.sync is paused until somebody resumes it: its slots are passed over."

    row = page.get_by_role("row").filter(has_text="stock.sync")
    expect(row).to_contain_text("stock-taking")
    assert books.execute(made.encode()).fetchone() != before
    page.get_by_role("button", name="Resume stock.sync").click()
    assert admin.toast() == "Schedule stock.sync goes on with its next slot."
    expect(row).not_to_contain_text("stock-taking")


def test_a_schedule_is_edited_with_its_next_slots_in_sight_and_reset(admin: Tab, books: Db) -> None:
    page = admin.go("/schedules/reports.nightly")
    rule = "select cron from rowlock.schedules where name = 'reports.nightly'"

    page.get_by_text("Edit this schedule").click()
    previewed = page.locator("#edit-schedule [data-previewed]")
    page.get_by_label("Rule").fill("61 4 * * *")
    expect(previewed.locator(".fault")).to_contain_text("61")
    with admin.refused(400):
        page.get_by_role("button", name="Save").click()
    assert "61" in admin.toast()
    page.get_by_label("Rule").fill("45 4 * * *")
    expect(previewed.locator("li").first).to_contain_text("04:45")
    page.get_by_role("button", name="Save").click()

    facts = page.get_by_role("region", name="Facts")
    expect(facts).to_contain_text("45 4 * * *")
    expect(facts).to_contain_text("by admin")
    assert books.execute(rule.encode()).fetchone() == ("45 4 * * *",)
    confirm(asked(page, "Reset to code"), "Reset to code", why="as it was")
    expect(facts).to_contain_text("30 3 * * *")
    assert books.execute(rule.encode()).fetchone() == ("30 3 * * *",)


def test_a_schedule_is_added_and_removed_and_one_of_code_is_not(admin: Tab, books: Db) -> None:
    name = f"stock/take <b>? {uuid4().hex[:6]}"
    there = "select exists (select from rowlock.schedules where name = %s)"
    page = admin.go("/schedules")

    page.get_by_text("Add a schedule").click()
    form = page.locator("#add-schedule")
    form.get_by_label("Name").fill(name)
    form.get_by_label("Task").select_option("stock.sync")
    form.get_by_label("Rule").fill("0 5 * * SUN")
    form.get_by_label("Time zone").fill("Europe/Paris")
    expect(form.locator("[data-previewed] li").first).to_contain_text("05:00")
    form.get_by_role("button", name="Add").click()

    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    assert books.execute(there, [name]).fetchone() == (True,)
    confirm(asked(page, "Remove"), "Remove")
    page.wait_for_url(re.compile("/schedules$"))
    assert books.execute(there, [name]).fetchone() == (False,)
    page = admin.go("/schedules/stock.sync")
    dialog = asked(page, "Remove")
    with admin.refused(409):
        confirm(dialog, "Remove")
    expect(dialog.get_by_role("alert")).to_contain_text("code")
    assert books.execute(there, ["stock.sync"]).fetchone() == (True,)


# Workflows


def test_one_click_approves_an_order(admin: Tab, books: Db) -> None:
    order = goods.checkout.enqueue(1002, 2, 900_00)
    page = admin.go(f"/workflows/{order.id}")

    page.get_by_role("button", name="Approve").click()

    assert admin.toast() == "Signal 'approval' is sent."
    expect(page.locator(".names .state").first).to_have_text("succeeded")
    expect(page.get_by_role("region", name="Signals")).to_contain_text('"approved": true')
    becomes(books, order.id, "succeeded")
    assert said(books, order.id, "result") == "parcel-1002"


def test_a_signal_is_written_by_hand(admin: Tab, books: Db) -> None:
    order = goods.checkout.enqueue(1004, 1, 900_00)
    page = admin.go(f"/workflows/{order.id}")
    expect(page.get_by_role("button", name="Approve")).to_be_visible()

    dialog = asked(page, "Signal")
    dialog.get_by_label("Name").fill("approval")
    dialog.get_by_label("Payload").fill('{"approved": "perhaps"}')
    with admin.refused(400):
        confirm(dialog, "Signal")
    expect(dialog.get_by_role("alert")).to_contain_text("approved")
    dialog.get_by_label("Payload").fill('{"approved": false}')
    confirm(dialog, "Signal", why="the customer has called")

    assert admin.toast() == "Signal 'approval' is sent."
    becomes(books, order.id, "succeeded")
    assert said(books, order.id, "result") == "refused"
    expect(page.get_by_role("region", name="Activity")).to_contain_text("the customer has called")


def test_a_workflow_that_is_cancelled_shows_what_it_undoes(admin: Tab, books: Db) -> None:
    order = goods.checkout.enqueue(1006, 3, 900_00)
    page = admin.go(f"/workflows/{order.id}")
    expect(page.get_by_role("button", name="Approve")).to_be_visible()

    confirm(asked(page, "Cancel"), "Cancel", why="sold out")

    assert "cancelled" in admin.toast()
    expect(page.locator(".names .state").first).to_have_text("cancelled")
    expect(page.get_by_role("region", name="Undo")).to_contain_text("release")
    becomes(books, order.id, "cancelled")


def test_a_failed_workflow_goes_on_and_another_is_forked_from_it(admin: Tab, books: Db) -> None:
    failed = goods.publish.enqueue("huge catalogue")
    becomes(books, failed.id, "failed")
    page = admin.go(f"/workflows/{failed.id}")

    confirm(asked(page, "Retry"), "Retry", why="the printer is back")

    assert admin.toast() == "It goes on after 1 step."
    becomes(books, failed.id, "failed")  # it is not
    page = admin.go(f"/workflows/{failed.id}")
    page.locator("summary.row", has_text="upload").click()
    dialog = asked(page, "Fork from upload")
    expect(dialog.get_by_label("From step")).to_have_value("upload")
    dialog.get_by_label("Other arguments").fill('{"name": "small catalogue"}')
    confirm(dialog, "Fork")
    page.wait_for_url(lambda url: not url.endswith(str(failed.id)))
    expect(page.locator(".names .state").first).to_have_text("succeeded")
    assert said(books, page.url.rpartition("/")[2], "result") == "small catalogue.pdf"


# Database and audit


def test_a_claim_is_measured(admin: Tab) -> None:
    page = admin.go("/database")

    page.get_by_role("button", name="Measure a claim").click()

    assert admin.toast().startswith("Tried and undone.")
    expect(page.locator("#trial")).to_contain_text("tried by admin")
    expect(page.locator("#trial .finding").first).to_be_visible()


def test_the_audit_says_who_did_what_and_why(admin: Tab, books: Db) -> None:
    why = fresh("the till is locked")
    job = goods.resize.using(queue=fresh("till")).enqueue(3)
    confirm(asked(admin.go(f"/jobs/{job.id}"), "Cancel"), "Cancel", why=why)
    admin.toast()

    page = admin.go("/audit")
    event = page.get_by_role("row").filter(has_text=why)

    expect(event).to_contain_text("admin")
    expect(event).to_contain_text("cancelled job")
    page.get_by_label("What").select_option("paused")
    page.wait_for_url("**/audit?*kind=paused*")
    expect(event).to_have_count(0)
    page.get_by_label("What").select_option("cancelled")
    expect(event).to_have_count(1)
    page.get_by_label("Who").fill("nobody")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("No such event")).to_be_visible()
    page.get_by_role("link", name="Show all").click()
    page.get_by_label("Job").fill(str(job.id))
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("#events tbody tr")).to_have_count(1)
    assert said(books, job.id) == "cancelled"
