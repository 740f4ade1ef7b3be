"""The audit: who did what, found by kind, by name and by job, a page at a time."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from rowlock import Filter, Rowlock
from rowlock.dashboard.pages import audit
from rowlock.errors import InvalidOption
from rowlock.model.results import Cursor, EventPage
from rowlock.store import events
from tests.dashboard.browser import Browser
from tests.rows import Db, put

ODD = 'a/b?c <i> "q" \u202eabc'


def told(client: Browser, **asked: str) -> dict[str, Any]:
    answer = client.get("/api/audit", params=asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def rows(page: str) -> list[str]:
    """The rows of the table, as they read; without when it was."""
    found = re.findall(r'<tr id="event-.*?</time></td>(.*?)</tr>', page, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in found]


def write(db: Db, count: int, kind: str, *, actor: str = "ann") -> None:
    """Events of one kind, each a second older than the one before; older than any that is there."""
    db.execute(
        """insert into rowlock.events (at, kind, actor, job)
           select coalesce((select min(at) from rowlock.events), rowlock.now()) - make_interval(secs => n), %s, %s,
               gen_random_uuid()
           from generate_series(1, %s) as n""",
        [kind, actor, count],
    )


def test_an_empty_audit_says_what_will_stand_there(client: Browser) -> None:
    page = client.get("/audit")

    assert page.status_code == 200
    assert "No events yet" in page.text


def test_a_deed_reads_as_a_sentence(client: Browser, app: Rowlock, db: Db) -> None:
    job = put(db, task="mail.send", queue="mail")
    app.jobs.move(Filter(ids=[job]), queue="slow", by="ben", why="too many")
    app.jobs.cancel(Filter(ids=[job]), by="ann", why="wrong customer")
    app.queues.pause("mail", by="ann", why="host is down")
    app.queues.resume("mail", by="ben")

    page = client.get("/audit")

    short = f"…{str(job)[-8:]}"
    assert rows(page.text) == [
        "ben resumed queue mail \N{EN DASH}",
        "ann paused queue mail host is down",
        f"ann cancelled job {short} of mail.send , which was ready wrong customer",
        f"ben moved job {short} of mail.send from queue mail to slow too many",
    ]
    assert f'href="/jobs/{job}"' in page.text
    assert page.text.count(">host is down</q>") == 1


def test_every_kind_that_is_known_reads_as_something(client: Browser, db: Db) -> None:
    for kind in (*audit.KINDS, "unheard-of"):
        db.execute("insert into rowlock.events (kind, actor, job) values (%s, 'ann', %s)", [kind, uuid4()])
        db.execute("insert into rowlock.events (kind, actor) values (%s, 'ann')", [kind])

    page = client.get("/audit")

    assert page.status_code == 200
    assert len(rows(page.text)) == min(50, 2 * len(audit.KINDS) + 2)


def test_a_verb_over_many_jobs_is_one_line_that_unfolds(client: Browser, app: Rowlock, db: Db) -> None:
    jobs = [put(db, "failed", task="mail.send") for _ in range(55)]
    other = put(db)
    app.jobs.retry(Filter(ids=jobs), by="ann", why="the host is back")
    app.jobs.cancel(Filter(ids=[other]), by="ann", why="the host is back")
    app.jobs.run_next(Filter(ids=jobs[:2]), by="ben")

    text = client.get("/audit").text

    assert re.findall(r"<summary>.*?</span> (.*?)</summary>", text) == [
        "let run next 2 jobs of mail.send",
        "retried 55 jobs of mail.send",
    ]
    assert len(rows(text)) == 3
    assert all(f'href="/jobs/{job}"' in text for job in jobs)


def test_names_are_shown_as_they_are_and_never_as_markup(client: Browser, app: Rowlock) -> None:
    app.tasks.pause("t", by=ODD, why=ODD)

    page = client.get("/audit")

    assert "<i>" not in page.text
    assert "a/b?c &lt;i&gt;" in page.text
    assert "/audit?actor=a%2Fb%3Fc+%3Ci%3E" in page.text


def test_it_is_filtered_by_kind_by_name_and_by_job(client: Browser, app: Rowlock, db: Db) -> None:
    first, second = put(db), put(db)
    app.jobs.run_next(Filter(ids=[first, second]), by="Ann Smith")
    app.jobs.cancel(Filter(ids=[first]), by="ben")

    assert [one["kind"] for one in told(client, kind="cancelled")["events"]] == ["cancelled"]
    assert [one["actor"] for one in told(client, actor="ann")["events"]] == ["Ann Smith", "Ann Smith"]
    assert [one["kind"] for one in told(client, job=str(first))["events"]] == ["cancelled", "run_next"]
    assert told(client, job=str(second), kind="cancelled")["events"] == []
    assert "No such event" in client.get("/audit", params={"actor": "nobody"}).text


def test_pages_follow_each_other_without_a_gap(client: Browser, db: Db) -> None:
    write(db, 120, "added")

    pages = [told(client)]
    while before := pages[-1]["next"]:
        pages.append(told(client, before=before))

    seen = [one["id"] for page in pages for one in page["events"]]
    assert [len(page["events"]) for page in pages] == [50, 50, 20]
    assert len(set(seen)) == 120
    assert "Newest" in client.get("/audit", params={"before": pages[0]["next"]}).text


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> int:
    """A window of forty events, so that a test need not write twenty thousand."""
    monkeypatch.setattr(audit, "_WINDOW", 40)
    return 40


def test_what_is_rare_is_looked_for_as_far_as_a_window_goes_and_then_on(client: Browser, db: Db, narrow: int) -> None:
    write(db, narrow + 5, "moved")
    write(db, 1, "paused")

    first = told(client, kind="paused")
    second = told(client, kind="paused", before=first["next"])

    assert (first["events"], first["looked"]) == ([], narrow)
    assert first["back_to"] is not None
    assert [one["kind"] for one in second["events"]] == ["paused"]
    assert second["next"] is None
    assert "Look further" in client.get("/audit", params={"kind": "paused"}).text


def test_what_is_no_id_and_no_place_is_refused_in_words(client: Browser) -> None:
    no_id = client.get("/api/audit", params={"job": "seventeen"})
    no_place = client.get("/api/audit", params={"before": "yesterday"})

    assert (no_id.status_code, no_place.status_code) == (400, 400)
    assert "is not a UUID" in no_id.json()["error"]
    assert "take it from the page before" in no_place.json()["error"]


def test_events_of_one_moment_are_told_apart_by_their_ids(app: Rowlock, db: Db) -> None:
    db.execute(
        "insert into rowlock.events (at, kind, actor) select now(), 'moved', 'me' from generate_series(1, 5)",
    )

    async def pages() -> list[EventPage]:
        found: list[EventPage] = []
        before: Cursor | None = None
        while not found or before is not None:
            page = await app.database.aconverse(
                lambda before=before: events.page(  # type: ignore[misc]  # a default, so that it is bound now
                    kind=None, actor=None, job=None, before=before, limit=2
                ),
                atomic=False,
            )
            found.append(page)
            before = page.next
        await app.aclose()
        return found

    found = asyncio.run(pages())

    assert [len(page.events) for page in found] == [2, 2, 1]
    assert len({event.id for page in found for event in page.events}) == 5


def test_a_place_is_read_as_it_was_written() -> None:
    place = Cursor.read("2026-11-16T13:25:34.161390+00:00/01a1e489-96f2-7cae-8dc8-69c9e697eb96")

    assert Cursor.read(str(place)) == place
    assert place.id == UUID("01a1e489-96f2-7cae-8dc8-69c9e697eb96")
    assert Cursor.read("2026-11-16T13:25:34/01a1e489-96f2-7cae-8dc8-69c9e697eb96").at.utcoffset() == timedelta(0)


@pytest.mark.parametrize("text", ["", "/", "now/1", "2026-11-16/", "2026-11-16T13:25:34Z/not-an-id"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="is not a place in this list"):
        Cursor.read(text)
