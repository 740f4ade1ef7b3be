"""Every route by every method, for every role, from every origin: what passes is what may; no look changes a row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from starlette.routing import Route

from rowlock import Rowlock
from rowlock.dashboard import Dashboard, Visitor
from rowlock.dashboard.access.visitor import ROLES, Role
from rowlock.dashboard.action import Action
from rowlock.dashboard.actions import ACTIONS
from rowlock.dashboard.http.openapi import SIGNALS
from rowlock.dashboard.pages import PAGES
from rowlock.store import schema
from rowlock.store.query import Conversation
from tests.dashboard.browser import OURS, Browser, browsing
from tests.dashboard.corpus import Filled, fill
from tests.dashboard.test_security_guard import wrong_headers
from tests.depth import deep, deep_unless
from tests.rows import Db

SECRET = "whsec_" + "A" * 44
ORIGINS = {
    "same": OURS,
    "foreign": {"origin": "http://evil.example", "sec-fetch-site": "cross-site"},
    "none": {},
    "null": {"origin": "null"},
}


def dashboard_for(app: Rowlock, role: Role | None, *, read_only: bool = False) -> Dashboard:
    visitor = None if role is None else Visitor("ann", role)
    return Dashboard(app, auth=lambda _request: visitor, read_only=read_only, webhooks=[SECRET])


@dataclass(frozen=True)
class Asked:
    """One way to ask a route."""

    path: str
    action: Action[Any] | None
    is_page: bool


def routes(dashboard: Dashboard, filled: Filled) -> Iterator[Asked]:
    """The table of the app itself, each path with the name of something that is there."""
    actions = {prefix + action.path: action for action in dashboard.actions for prefix in ("", "/api")}
    for route in dashboard.routes:
        if isinstance(route, Route):
            yield Asked(filled_in(route.path, filled), actions.get(route.path), "GET" in (route.methods or ()))


def filled_in(path: str, filled: Filled) -> str:
    things = {"id": str(filled.workflows[0] if "/workflows/" in path else filled.jobs[4])}
    things |= {"name": quote(filled.schedules[0])}
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda named: things.get(named[1], "1"), path)


def checksum(db: Db) -> dict[str, str]:
    """What every table of the schema holds."""
    tables = db.execute(
        "select relname from pg_class where relnamespace = 'rowlock'::regnamespace and relkind in ('r', 'p')"
        " and not relispartition order by 1"
    ).fetchall()
    sums = "select coalesce(md5(string_agg(one::text, '' order by one::text)), '') from rowlock.{} as one"
    return {
        name: db.execute(psycopg.sql.SQL(sums).format(psycopg.sql.Identifier(name))).fetchall()[0][0]
        for (name,) in tables
    }


def test_the_table_is_what_pages_and_actions_say(app: Rowlock) -> None:
    dashboard = dashboard_for(app, "admin")
    paths = {route.path for route in dashboard.routes if isinstance(route, Route)}

    said = [*(page.path for page in PAGES), *(action.path for action in ACTIONS)]
    described = {prefix + path for path in said for prefix in ("", "/api")}
    assert paths == described | {"/api/openapi.json", SIGNALS}
    assert len({(page.path) for page in PAGES}) == len(PAGES)
    assert all(action.role in {"operator", "admin"} for action in ACTIONS)
    assert all(action.says.endswith(".") for action in ACTIONS)


@deep
@pytest.mark.parametrize("role", [None, *ROLES])
def test_a_look_is_for_every_visitor_from_anywhere_and_changes_nothing(app: Rowlock, db: Db, role: Role | None) -> None:
    filled = fill(db, "harmless", name="harmless")
    dashboard = dashboard_for(app, role)
    pages = [asked.path for asked in routes(dashboard, filled) if asked.is_page]
    before = checksum(db)

    with browsing(dashboard) as browser:
        answers = {
            (path, method, origin): browser.request(method, path, headers=headers)
            for path in pages
            for method, origin, headers in (
                ("GET", "same", ORIGINS["same"]),
                ("GET", "foreign", ORIGINS["foreign"]),
                ("HEAD", "none", {}),
                ("OPTIONS", "none", {}),
            )
        }

    expected = {"GET": 401, "HEAD": 401, "OPTIONS": 401} if role is None else {"GET": 200, "HEAD": 200, "OPTIONS": 405}
    wrong = {asked: answer.status_code for asked, answer in answers.items() if answer.status_code != expected[asked[1]]}
    # Some pages must be asked something.
    assert {asked for asked, status in wrong.items() if status != 400 or "preview" not in asked[0]} == set()
    assert {asked: wrong_headers(answer) for asked, answer in answers.items() if wrong_headers(answer)} == {}
    assert len(before) >= 17
    assert checksum(db) == before


@pytest.mark.parametrize("role", deep_unless(lambda role: role != "admin", [None, *ROLES]))
def test_an_action_is_for_those_who_may_and_for_our_own_forms(app: Rowlock, db: Db, role: Role | None) -> None:
    filled = fill(db, "harmless", name="harmless")
    dashboard = dashboard_for(app, role)
    asked = [one for one in routes(dashboard, filled) if one.action is not None]
    before = checksum(db)

    with browsing(dashboard) as browser:
        csrf = {} if role is None else {"csrf": browser.csrf}
        refused = {
            (one.path, origin, "csrf" in fields): browser.post(one.path, data=fields, headers=headers).status_code
            for one in asked
            for origin, headers in ORIGINS.items()
            for fields in (csrf, {})
            if origin != "same" or not fields or not may(role, one)
        }
        methods = {
            (one.path, method): browser.request(method, one.path, headers=OURS).status_code
            for one in asked
            for method in ("PUT", "PATCH", "DELETE")
        }
        unchanged = checksum(db)
        allowed = {
            one.path: browser.post(one.path, data=csrf, headers=OURS).status_code for one in asked if may(role, one)
        }

    assert set(refused.values()) == {401 if role is None else 403}, refused
    assert set(methods.values()) == {401 if role is None else 405}, methods
    assert unchanged == before
    # With an empty form: understood, and refused for what it lacks, or done.
    assert {path: status for path, status in allowed.items() if status in {401, 403, 405, 500}} == {}
    assert bool(allowed) == (role in {"operator", "admin"})


def may(role: Role | None, one: Asked) -> bool:
    return role is not None and one.action is not None and Visitor("x", role).may(one.action.role)


def test_read_only_every_action_is_refused_and_every_page_is_there(app: Rowlock, db: Db) -> None:
    filled = fill(db, "harmless", name="harmless")
    dashboard = dashboard_for(app, "admin", read_only=True)
    table = [*routes(dashboard, filled)]
    before = checksum(db)

    with browsing(dashboard) as browser:
        csrf = browser.csrf
        actions = {
            one.path: browser.post(one.path, data={"csrf": csrf}, headers=OURS).status_code
            for one in table
            if one.action
        }
        program = {
            one.path: browser.post(one.path, json={}, headers={"authorization": "Bearer x"}).status_code
            for one in table
            if one.action
        }
        pages = {one.path: browser.get(one.path).status_code for one in table if one.is_page}
        signal = browser.post(SIGNALS, json={}, headers={"webhook-id": "x"})

    assert set(actions.values()) == {403}
    assert set(program.values()) == {403}
    assert {status for path, status in pages.items() if "preview" not in path} == {200}
    assert signal.status_code in {403, 404}
    assert checksum(db) == before


@deep
def test_read_only_postgresql_itself_refuses(app: Rowlock, db: Db) -> None:
    dashboard = dashboard_for(app, "admin", read_only=True)
    before = checksum(db)

    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        dashboard.reader.queues.pause("mail", by="ann")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        dashboard.reader.enqueue("t")

    assert checksum(db) == before


def test_whatever_only_looks_cannot_write_also_where_others_can(app: Rowlock, db: Db) -> None:
    dashboard = dashboard_for(app, "admin")

    def setting() -> Conversation[object]:
        answered = yield schema.now()
        return answered[0]

    dashboard.reader.database.converse(setting, atomic=False)
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        dashboard.reader.queues.pause("mail", by="ann")

    assert app.queues.pauses() == ()


def test_a_login_that_may_only_view_sees_pages_as_far_as_it_may(app: Rowlock, db: Db, url: str) -> None:
    app.migrate(roles=True)
    db.execute("do $$ begin create role dashboard_viewer login; exception when duplicate_object then null; end $$")
    db.execute("grant rowlock_viewer to dashboard_viewer")
    filled = fill(db, "people wrote this", name="plain", data="c4n4ry-d4t4")
    viewer = Rowlock(as_user(url, "dashboard_viewer"))

    with viewer, browsing(dashboard_for(viewer, "admin")) as browser:
        pages = {
            one.path: browser.get(one.path) for one in routes(dashboard_for(viewer, "admin"), filled) if one.is_page
        }
        refused = browser.act("/queues/pause", queue="mail", anyway="1")

    wrong = {path: (page.status_code, page.text[-300:]) for path, page in pages.items() if page.status_code != 200}
    assert {path for path in wrong if "preview" not in path} == set(), wrong
    # Of the audit, which such a login may read whole, nothing that we write holds users' data.
    assert [path for path, page in pages.items() if "c4n4ry-d4t4" in page.text and "audit" not in path] == []
    assert refused.status_code == 403
    assert "may not do this" in refused.json()["error"]


def as_user(url: str, user: str) -> str:
    return psycopg.conninfo.make_conninfo(url, user=user)


def test_the_schema_is_what_a_checksum_reads(db: Db, app: Rowlock) -> None:
    before = checksum(db)

    app.enqueue("t")

    changed = {table for table, was in before.items() if checksum(db)[table] != was}
    assert changed == {"jobs"}


def test_a_stranger_learns_nothing_of_ids(app: Rowlock, db: Db) -> None:
    filled = fill(db, "harmless", name="harmless")
    with browsing(dashboard_for(app, None)) as browser:
        there, nowhere = (ask(browser, str(job)) for job in (filled.jobs[0], "01a1e4a3-7773-7346-954c-000000000000"))

    assert there == nowhere


def ask(browser: Browser, job: str) -> tuple[int, str]:
    answer = browser.get(f"/api/jobs/{job}")
    return answer.status_code, answer.text
