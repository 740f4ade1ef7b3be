"""What people do with jobs, clicked in a real Chromium in a shop that is at work: many jobs, and one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from playwright.sync_api import Locator, Page, expect

from rowlock import Job
from tests.dashboard import shop as goods
from tests.dashboard.books import becomes, fresh, said
from tests.dashboard.chromium import Tab, needs_chromium
from tests.depth import deep
from tests.rows import Db

pytestmark = [needs_chromium, deep]

# None of the shop's workers looks into a queue that a test names: what is put there lies there.


def ids(jobs: Sequence[Job[Any]]) -> list[UUID]:
    return [UUID(str(job.id)) for job in jobs]


def put(queue: str, count: int, **options: object) -> list[UUID]:
    """Jobs that lie in a queue."""
    task = goods.resize.using(queue=queue, **options)  # type: ignore[arg-type]
    return ids(goods.app.enqueue_many(task.bind(photo) for photo in range(count)))


def rows(page: Page) -> Locator:
    return page.locator("table.jobs tbody tr")


def row_state(page: Page, job_id: UUID) -> Locator:
    return page.locator(f"#job-{job_id} .state")


def bulk(page: Page, verb: str) -> Locator:
    """Press a verb over the table; answers the dialog that says what it would do."""
    page.get_by_role("form", name="With these jobs").get_by_role("button", name=verb, exact=True).click()
    dialog = page.locator("#preview")
    expect(dialog).to_be_visible()
    return dialog


def ask(page: Page, verb: str, dialog: str) -> Locator:
    """Press a button of a job's page that asks first; answers its dialog."""
    page.locator(f"[data-dialog={dialog}]").click()
    opened = page.get_by_role("dialog")
    expect(opened.get_by_role("button", name=verb, exact=True)).to_be_visible()
    return opened


def test_what_is_typed_or_chosen_finds_jobs(admin: Tab, books: Db) -> None:
    queue, tag = fresh("albums"), fresh("album")
    albums = put(queue, 3, tags=[tag])
    page = admin.go("/jobs")

    page.get_by_label("Search", exact=True).fill(f"queue:{queue} photo=1")
    page.get_by_role("button", name="Search").click()

    expect(rows(page)).to_have_count(1)
    expect(page.locator(f"#job-{albums[1]}")).to_be_visible()
    page.get_by_role("link", name="Without argument photo=1").click()
    expect(rows(page)).to_have_count(3)
    states = page.get_by_role("navigation", name="States")
    states.get_by_role("link", name="succeeded").click()
    page.wait_for_url("**/jobs?*state=succeeded*")
    expect(page.get_by_text("No job matches")).to_be_visible()
    states.get_by_role("link", name="ready").click()
    expect(states.locator("[aria-current]")).to_have_text("ready")
    expect(rows(page)).to_have_count(3)
    page.get_by_role("link", name="Show all jobs").click()
    page.get_by_text("Filters", exact=True).click()
    fields = page.get_by_role("form", name="Filter jobs")
    fields.get_by_label("Tag").fill(tag)
    fields.get_by_label("Argument").fill('{"photo": 2}')
    fields.get_by_role("button", name="Apply").click()
    expect(rows(page)).to_have_count(1)
    page.get_by_label("Search", exact=True).fill(str(albums[0]))
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/{albums[0]}")
    expect(page.get_by_role("heading", level=1)).to_have_text("photos.resize")
    assert said(books, albums[0]) == "ready"


def test_many_jobs_are_turned_page_by_page(admin: Tab, books: Db) -> None:
    queue = fresh("pages")
    [last] = put(queue, 1)
    put(queue, 59)
    page = admin.go(f"/jobs?queue={queue}")

    expect(rows(page)).to_have_count(50)
    page.get_by_role("link", name="Older").click()

    expect(rows(page)).to_have_count(10)
    expect(page.locator(f"#job-{last}")).to_be_visible()
    expect(page.get_by_text("That is all.")).to_be_visible()
    page.get_by_role("link", name="Newest").click()
    expect(rows(page)).to_have_count(50)
    expect(page.locator(f"#job-{last}")).to_have_count(0)
    assert said(books, last) == "ready"


def test_ticked_jobs_are_cancelled_and_run_again(admin: Tab, books: Db) -> None:
    queue = fresh("crates")
    first, second, third = put(queue, 3)
    page = admin.go(f"/jobs?queue={queue}")

    for job_id in (first, second):
        page.get_by_label(f"Tick job {job_id}").check()
    expect(page.locator("[data-ticked]")).to_have_text("2 ticked")
    dialog = bulk(page, "Cancel")
    expect(dialog.get_by_role("heading")).to_have_text("Cancel: 2 jobs")
    dialog.get_by_label("Why").fill("the crates are empty")
    dialog.get_by_role("button", name="Cancel 2").click()

    assert admin.toast() == "2 jobs are cancelled."
    expect(row_state(page, first)).to_have_text("cancelled")
    expect(row_state(page, second)).to_have_text("cancelled")
    expect(row_state(page, third)).to_have_text("ready")
    assert [said(books, job_id) for job_id in (first, second, third)] == ["cancelled", "cancelled", "ready"]
    page = admin.go(
        f"/jobs?queue={queue}&state=cancelled"
    )  # those that somebody cancelled are retried if they are named
    page.get_by_label("Tick every job on this page").check()
    dialog = bulk(page, "Retry")
    expect(dialog.get_by_role("heading")).to_have_text("Retry: 2 jobs")
    dialog.get_by_role("link", name="Back").click()
    expect(dialog).to_be_hidden()
    bulk(page, "Retry").get_by_role("button", name="Retry 2").click()
    assert admin.toast() == "2 jobs will run again."
    assert [said(books, job_id) for job_id in (first, second)] == ["ready", "ready"]


def test_failed_jobs_are_retried_together(admin: Tab, books: Db) -> None:
    tag = fresh("till")
    declined = ids(goods.app.enqueue_many(goods.charge.using(tags=[tag]).bind(order, 900) for order in (18, 27)))
    for job_id in declined:
        becomes(books, job_id, "failed")
    page = admin.go(f"/jobs?tag={tag}&state=failed")
    expect(rows(page)).to_have_count(2)

    dialog = bulk(page, "Retry")
    expect(dialog.get_by_text("payments.charge").first).to_be_visible()
    dialog.get_by_role("button", name="Retry 2").click()

    assert admin.toast() == "2 jobs will run again."
    for job_id in declined:
        becomes(books, job_id, "failed")  # the bank says no once more
    page = admin.go(f"/jobs/{declined[0]}")
    expect(page.locator("#events-title")).to_be_visible()
    expect(page.locator("ol.done")).to_contain_text("admin retried")


def test_all_that_match_are_moved_put_first_and_deleted(admin: Tab, books: Db) -> None:
    queue, other = fresh("cellar"), fresh("loft")
    boxes = put(queue, 4)
    page = admin.go(f"/jobs?queue={queue}")
    expect(page.locator("[data-ticked]")).to_have_text("All that match")

    dialog = bulk(page, "Move")
    expect(dialog.get_by_role("heading")).to_have_text("Move: 4 jobs")
    dialog.get_by_label("To the queue").fill(other)
    dialog.get_by_role("button", name="Move 4").click()

    assert admin.toast() == "4 jobs were moved."
    expect(page.get_by_text("No job matches")).to_be_visible()
    page = admin.go(f"/jobs?queue={other}")
    dialog = bulk(page, "Priority")
    dialog.get_by_label("Priority").select_option("3")
    dialog.get_by_role("button", name="Priority 4").click()
    assert admin.toast() == "4 jobs have the new priority."
    assert [said(books, box, "priority") for box in boxes] == [3, 3, 3, 3]
    bulk(page, "Run next").get_by_role("button", name="Run next 4").click()
    assert admin.toast() == "4 jobs run next."
    dialog = bulk(page, "Delete")
    dialog.get_by_label("Type 4 to confirm").fill("4")
    dialog.get_by_role("button", name="Delete 4").click()
    assert admin.toast() == "4 jobs are deleted."
    expect(page.get_by_text("No job matches")).to_be_visible()
    assert [said(books, box) for box in boxes] == [None] * 4


def test_a_job_is_edited_put_first_moved_and_done(admin: Tab, books: Db) -> None:
    [photo] = put("darkroom", 1)
    page = admin.go(f"/jobs/{photo}")

    dialog = ask(page, "Edit arguments", "edit")
    for typed, says in (("{photo: 8}", "args is no JSON"), ('{"photo": "of a cat"}', "photo")):
        dialog.get_by_label("Arguments").fill(typed)
        with admin.refused(400):
            dialog.get_by_role("button", name="Edit arguments").click()
        expect(dialog.get_by_role("alert")).to_contain_text(says)
        expect(dialog).to_be_visible()
    dialog.get_by_label("Arguments").fill('{"photo": 8, "width": 320}')
    dialog.get_by_role("button", name="Edit arguments").click()

    assert "width" in admin.toast()
    expect(page.get_by_role("region", name="Arguments")).to_contain_text('"width": 320')
    assert said(books, photo, "args") == {"photo": 8, "width": 320}
    facts = page.get_by_role("region", name="Facts")
    dialog = ask(page, "Priority", "priority")
    dialog.get_by_label("Priority").select_option("-2")
    dialog.get_by_role("button", name="Priority").click()
    assert admin.toast() == "The job has another priority now."
    expect(facts).to_contain_text("-2")
    page.get_by_role("button", name="Run next").click()
    assert admin.toast() == "The job runs next."
    dialog = ask(page, "Move", "move")
    dialog.get_by_label("To the queue").fill("default")
    dialog.get_by_role("button", name="Move").click()
    assert admin.toast() == "The job was moved."
    expect(page.locator(".marks .state")).to_have_text("succeeded")
    expect(page.get_by_role("region", name="Result")).to_contain_text("photo-8-320.webp")
    page.get_by_role("button", name="Retry").click()
    assert admin.toast() == "The job will run again."
    events = page.get_by_role("region", name="Events")
    for words in ("retried", "moved", "let run next", "gave another priority to", "edited"):
        expect(events).to_contain_text(f"admin {words}")


def test_a_job_is_copied_made_again_and_deleted(admin: Tab, books: Db) -> None:
    [photo] = put("drawer", 1)
    page = admin.go(f"/jobs/{photo}")

    page.get_by_role("button", name="Copy the id").click()
    assert admin.toast() == "Copied."
    assert page.evaluate("navigator.clipboard.readText()") == str(photo)
    page.get_by_role("region", name="Arguments").get_by_role("button", name="Copy").click()
    assert admin.toast() == "Copied."
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == said(books, photo, "args")
    dialog = ask(page, "Enqueue", "again")
    dialog.get_by_label("Arguments").fill('{"photo": 11}')
    dialog.get_by_label("Why").fill("the first one is blurred")
    dialog.get_by_role("button", name="Enqueue", exact=True).click()

    page.wait_for_url(lambda url: not url.endswith(str(photo)))
    again = page.url.rpartition("/")[2]
    expect(page.get_by_role("region", name="Arguments")).to_contain_text('"photo": 11')
    assert (said(books, again, "queue"), said(books, again, "args")["photo"]) == ("drawer", 11)
    ask(page, "Delete", "delete").get_by_role("button", name="Delete").click()
    page.wait_for_url(re.compile("/jobs$"))
    assert said(books, again) is None
    with admin.refused(404):
        admin.go(f"/jobs/{again}")
    expect(page.get_by_role("alert")).to_contain_text("It was deleted by admin")


def test_a_job_is_enqueued_by_hand(admin: Tab, books: Db) -> None:
    page = admin.go("/jobs")

    dialog = ask(page, "Enqueue", "enqueue")
    dialog.get_by_label("Task").fill("photos.resise")
    with admin.refused(409):
        dialog.get_by_role("button", name="Enqueue", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("did you mean photos.resize?")
    dialog.get_by_label("Task").fill("photos.resize")
    dialog.get_by_label("Arguments").fill('{"photo": 77, "width": 99}')
    dialog.get_by_role("button", name="Enqueue", exact=True).click()

    page.wait_for_url(re.compile(r"/jobs/[0-9a-f-]{36}$"))
    expect(page.locator(".marks .state")).to_have_text("succeeded")
    assert said(books, page.url.rpartition("/")[2], "result")["file"] == "photo-77-99.webp"


def test_a_job_that_runs_is_told_to_stop(admin: Tab, books: Db) -> None:
    winter = goods.import_file.enqueue("winter.csv", 1000)
    page = admin.go(f"/jobs/{winter.id}")
    expect(page.locator(".marks .state")).to_have_text("running")
    expect(page.get_by_role("region", name="Facts")).to_contain_text("of 1,000")  # it says how far it is

    dialog = ask(page, "Cancel", "cancel")
    dialog.get_by_label("Why").fill("the file is last year's")
    dialog.get_by_role("button", name="Cancel", exact=True).click()

    assert admin.toast() == "The job is cancelled; if it runs, it is told to stop."
    expect(page.locator(".marks .state")).to_have_text("cancelled")
    expect(page.get_by_role("region", name="Events")).to_contain_text("the file is last year's")
    becomes(books, winter.id, "cancelled")
