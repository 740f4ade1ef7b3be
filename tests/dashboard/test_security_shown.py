"""What pages show: harmful names stay text, secrets are shown to nobody, and users' data to no viewer."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest

from rowlock import Rowlock
from rowlock.dashboard import Dashboard, Visitor
from rowlock.dashboard.access.visitor import ROLES, Role
from tests.dashboard.browser import Browser, browsing
from tests.dashboard.corpus import PAYLOADS, Filled, fill
from tests.depth import deep, deep_unless
from tests.rows import Db, put

LISTS = ("/", "/jobs", "/queues", "/workers", "/schedules", "/workflows", "/database", "/audit")
# What a page may have beside, for there is more of everything: a next page, a long list to choose from.
INERT = {"rel", "required", "selected", "checked", "disabled", "aria-hidden"}
ADDRESSES = ("href", "src", "action", "formaction", "xlink:href", "data", "poster", "srcset")


def visiting(app: Rowlock, role: Role) -> Dashboard:
    return Dashboard(app, auth=lambda _request: Visitor("ann", role))


def details(filled: Filled) -> Iterator[str]:
    """The pages of single things."""
    for job in filled.jobs:
        yield f"/jobs/{job}"
    for workflow in filled.workflows:
        yield f"/workflows/{workflow}"
    for schedule in filled.schedules:
        yield f"/schedules/{quote(schedule, safe='')}"


def filtered(name: str) -> Iterator[str]:
    """Lists that say what they were asked for."""
    said = quote(name, safe="")
    yield from (f"/jobs?{field}={said}" for field in ("queue", "task", "tag", "key", "error", "reason", "q"))
    yield from (f"/?queue={said}", f"/?task={said}", f"/workflows?workflow={said}", f"/workflows?key={said}")
    yield from (f"/audit?actor={said}", f"/audit?kind={said}", f"/queues?named={said}", f"/schedules?named={said}")
    yield from (f"/workers?named={said}", f"/nowhere/{said}", f"/schedules/{said}", f"/jobs/{said}")


class Shape(HTMLParser):
    """The elements of a page with the names of their attributes; and whatever of it could act."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: set[tuple[str, str]] = set()
        self.acts: list[str] = []
        self._inside: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside.append(tag)
        self.elements |= {(tag, "")} | {(tag, name) for name, _ in attrs}
        for name, value in attrs:
            if name.startswith("on") or name in {"style", "srcdoc"}:
                self.acts.append(f"<{tag} {name}={value}>")
            if name in ADDRESSES and not is_ours(value or ""):
                self.acts.append(f"<{tag} {name}={value}>")

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._inside[-1:] in (["script"], ["style"]) and data.strip():
            self.acts.append(data)


def is_ours(address: str) -> bool:
    """Whether an address stays within the dashboard."""
    return re.match(r"(?:/(?![/\\])|#|\?)", address) is not None or address == ""


@pytest.fixture
def plain(app: Rowlock, db: Db) -> set[tuple[str, str]]:
    """The elements that pages are made of when nothing means harm."""
    filled = fill(db, "harmless", name="harmless")
    with browsing(visiting(app, "admin")) as browser:
        pages = [browser.get(path) for path in (*LISTS, *details(filled), *filtered("harmless"))]
    assert [page.text[:1000] for page in pages if page.status_code >= 500] == []
    return set().union(*(Shape(page.text).elements for page in pages))


def test_the_corpus_is_large_and_each_of_it_would_do_harm_somewhere() -> None:
    careless = [Shape(f'<main><a href="{text}" title="{text}" id=\'{text}\'>{text}</a></main>') for text in PAYLOADS]

    harmless = [text for text, shape in zip(PAYLOADS, careless, strict=True) if not shape.acts]
    assert len(set(PAYLOADS)) >= 60
    # These mean harm to templates, to streams and to readers, and none to HTML.
    assert all(re.search(r"[{\\%&]|\u202e|\.\.|a/b|event:|//", text) for text in harmless)


@deep
def test_whatever_is_stored_stays_text_on_every_page(app: Rowlock, db: Db, plain: set[tuple[str, str]]) -> None:
    whole = fill(db, "\n".join(PAYLOADS), name=PAYLOADS[0])
    singly = Filled()
    for payload in PAYLOADS:
        fill(db, payload, singly)
    some = [*details(whole), *(f"/workflows/{one}" for one in singly.workflows[::2])]
    some += [f"/schedules/{quote(one, safe='')}" for one in singly.schedules if one.isprintable()]
    some += [f"/jobs/{one}" for one in singly.jobs[4::8]]

    with browsing(visiting(app, "admin")) as browser:
        pages = {path: browser.get(path) for path in (*LISTS, *some)}

    assert {path: page.status_code for path, page in pages.items() if page.status_code != 200} == {}
    check(pages.items(), plain)
    shown = html.unescape(pages[f"/jobs/{whole.jobs[4]}"].text)
    assert "{{7*7}}" in shown
    assert "${7*7}#{7*7}<%= 7*7 %>" in shown


@deep
def test_whatever_is_asked_stays_text_on_every_page(app: Rowlock, plain: set[tuple[str, str]]) -> None:
    with browsing(visiting(app, "admin")) as browser:
        pages = [(path, browser.get(path)) for payload in PAYLOADS[::3] for path in filtered(payload)]

    assert [(path, page.status_code) for path, page in pages if page.status_code >= 500] == []
    check(pages, plain)


def check(pages: object, plain: set[tuple[str, str]]) -> None:
    """That pages are made of nothing but what plain ones are, and that nothing in them acts."""
    for path, page in pages:  # type: ignore[attr-defined]
        if page.headers.get("content-type", "").startswith("text/html"):
            shape = Shape(page.text)
            assert shape.acts == [], path
            assert {pair for pair in shape.elements - plain if pair[1] not in INERT} == set(), path


def test_a_stream_is_one_page_whatever_its_values_say(app: Rowlock, db: Db) -> None:
    filled = fill(db, "x\r\rdata: y\n\nevent: page\ndata: <b>z</b>\u2028\n\nid: 7\nretry: 1", name="plain")
    dashboard = visiting(app, "admin")

    with browsing(dashboard) as browser:
        seen = [browser.watch(dashboard, path) for path in (f"/jobs/{filled.jobs[4]}", "/audit")]

    for stream in seen:
        events = [event for event in re.split(r"\r\n\r\n|\n\n|\r\r", stream) if event and event != ":"]
        assert events[0] == "retry: 3000"
        assert events[1].startswith("event: page\ndata: ")
        assert len(events) == 2
        assert all(line.startswith("data: ") for line in events[1].splitlines()[1:])


# Secrets and users' data

SECRET = "c4n4ry-s3cr3t"  # noqa: S105  to be looked for
# In quotes, for a line of a traceback is code, where password=x says nothing of x.
SAID = f"postgresql://ada:{SECRET}@db/shop password='{SECRET}' Authorization: Bearer {SECRET}"


def everything(browser: Browser, dashboard: Dashboard, filled: Filled) -> Iterator[tuple[str, str]]:
    """Every page as HTML, as JSON, and its first stream."""
    for path in (*LISTS, *details(filled)):
        for answer in (browser.get(path), browser.get(f"/api{path}")):
            assert answer.status_code == 200, (path, answer.text[:500])
            yield path, answer.text
    for path in ("/", f"/jobs/{filled.jobs[4]}", f"/workflows/{filled.workflows[0]}", "/audit"):
        yield f"{path} watched", browser.watch(dashboard, path)


@pytest.mark.parametrize("role", deep_unless(lambda role: role != "admin", ROLES))
def test_no_role_sees_a_secret_in_any_field(app: Rowlock, db: Db, role: Role) -> None:
    filled = fill(db, SAID, name="plain", data=SAID)
    keyed: dict[str, object] = {"password": SECRET, "api_key": SECRET, "nested": [{"client_secret": SECRET, "n": 1}]}
    filled.jobs.append(put_failed(db, keyed))
    dashboard = visiting(app, role)

    with browsing(dashboard) as browser:
        shown = dict(everything(browser, dashboard, filled))

    assert found(SECRET, shown) == []
    assert role == "viewer" or "***" in shown[f"/jobs/{filled.jobs[-1]}"]


def found(word: str, shown: dict[str, str]) -> list[tuple[str, str]]:
    """Where a word stands, with what is around it."""
    return [(path, text[max(0, text.index(word) - 90) :][:130]) for path, text in shown.items() if word in text]


def put_failed(db: Db, args: dict[str, object]) -> UUID:
    return put(db, "failed", args=args, error="Oops")


def test_a_viewer_sees_no_argument_no_result_and_no_error_of_anybody(app: Rowlock, db: Db) -> None:
    filled = fill(db, "people wrote this", name="plain", data="c4n4ry-d4t4")
    dashboard = visiting(app, "viewer")

    with browsing(dashboard) as browser:
        shown = dict(everything(browser, dashboard, filled))

    assert found("c4n4ry-d4t4", shown) == []
    assert "people wrote this" in shown["/audit"]


REASONS = [
    ("arguments do not fit", {"reason": "arguments do not fit 't': c4n4ry: Extra inputs are not permitted"}),
    ("its code raised", {"reason": "its code raised KeyError: 'c4n4ry'", "version": 1}),
    ("what is around its code raised", {"reason": "what is around its code raised KeyError: 'c4n4ry'", "version": 1}),
    ("what it returns does not fit", {"reason": "what it returns does not fit: c4n4ry; its steps", "version": 1}),
    ("changed code", {"reason": "changed code: the code calls step 'a' with ['c4n4ry'], and", "version": 1}),
]


@pytest.mark.parametrize(("says", "columns"), REASONS, ids=[says for says, _ in REASONS])
def test_a_viewer_does_not_see_in_a_reason_what_does_not_fit(
    app: Rowlock, db: Db, says: str, columns: dict[str, Any]
) -> None:
    job = put(db, "waiting", waits_for="code", **columns)
    db.execute("update rowlock.jobs set started_at = rowlock.now(), run_at = rowlock.now() + interval '1 minute'")
    paths = [prefix + path for path in (f"/jobs/{job}", "/jobs") for prefix in ("", "/api")]

    with browsing(visiting(app, "viewer")) as viewer, browsing(visiting(app, "operator")) as operator:
        seen = [viewer.get(path).text for path in paths]
        whole = operator.get(f"/api/jobs/{job}").text

    assert [text for text in seen if "c4n4ry" in text] == []
    assert says in seen[1]
    assert "c4n4ry" in whole


def test_an_operator_sees_them(app: Rowlock, db: Db) -> None:
    filled = fill(db, "people wrote this", name="plain", data="c4n4ry-d4t4")
    paths = [f"/jobs/{filled.jobs[4]}", f"/workflows/{filled.workflows[0]}", f"/schedules/{quote(filled.schedules[0])}"]

    with browsing(visiting(app, "operator")) as browser:
        shown = [browser.get(prefix + path).text for path in paths for prefix in ("", "/api")]

    assert all("c4n4ry-d4t4" in text for text in shown)


def test_who_may_see_them_is_the_hosts_choice(app: Rowlock, db: Db) -> None:
    filled = fill(db, "people wrote this", name="plain", data="c4n4ry-d4t4")
    seen = {}
    for least in ROLES:
        dashboard = Dashboard(app, auth=lambda _request: Visitor("ann", "operator"), arguments=least)
        with browsing(dashboard) as browser:
            seen[least] = "c4n4ry-d4t4" in browser.get(f"/api/jobs/{filled.jobs[4]}").text

    assert seen == {"viewer": True, "operator": True, "admin": False}


def test_a_viewer_cannot_find_out_an_argument_by_looking_for_it(app: Rowlock, db: Db) -> None:
    put_failed(db, {"pin": 1234})

    with browsing(visiting(app, "viewer")) as viewer:
        refused = [viewer.get(path) for path in ("/jobs?arg=pin=1234", "/api/jobs?arg=pin=1")]
        searched = viewer.get("/api/jobs?q=pin%3D1234", follow_redirects=True)
    with browsing(visiting(app, "operator")) as operator:
        found = operator.get("/api/jobs?arg=pin=1234")

    assert [answer.status_code for answer in (*refused, searched)] == [403, 403, 403]
    assert found.status_code == 200
