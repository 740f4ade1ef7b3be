"""The API as it describes itself, and signals by webhook over HTTP."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from pydantic import TypeAdapter
from starlette.routing import Route

from rowlock import Rowlock
from rowlock.dashboard import Dashboard, Tokens, Visitor
from rowlock.dashboard.http.openapi import SIGNALS
from rowlock.dashboard.pages import PAGES
from rowlock.dashboard.pages.licences import LICENCES
from tests.dashboard.browser import Browser, browsing
from tests.dashboard.corpus import fill
from tests.rows import Db, put
from tests.workflow.remembering import put_workflow

KEY = b"a secret that is 32 bytes long.."
SECRET = "whsec_" + base64.b64encode(KEY).decode()


def ann(_request: object) -> Visitor:
    return Visitor("ann", "admin")


@pytest.fixture
def described() -> dict[str, Any]:
    dashboard = Dashboard(Rowlock("postgresql://127.0.0.1:1/x"), auth=ann, webhooks=[SECRET])
    with browsing(dashboard) as browser:
        answer = browser.get("/api/openapi.json")
    described: dict[str, Any] = answer.json()
    return described


# The description


def test_every_route_of_the_api_is_described_and_no_other(described: dict[str, Any]) -> None:
    dashboard = Dashboard(Rowlock("postgresql://127.0.0.1:1/x"), auth=ann, webhooks=[SECRET])
    table = {
        (re.sub(r"\{(\w+):\w+\}", r"{\1}", route.path), method.lower())
        for route in dashboard.routes
        if isinstance(route, Route) and route.path.startswith(("/api/", SIGNALS))
        for method in (route.methods or set()) - {"HEAD"}
    }

    said = {(path, method) for path, methods in described["paths"].items() for method in methods}
    assert said == table - {("/api/openapi.json", "get")}


def test_it_is_whole_references_parameters_answers_and_ids(described: dict[str, Any]) -> None:
    operations = [operation for methods in described["paths"].values() for operation in methods.values()]

    assert described["openapi"] == "3.1.0"
    assert set(described["info"]) >= {"title", "version"}
    assert [reference for reference in references(described) if resolved(described, reference) is None] == []
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    for path, methods in described["paths"].items():
        for operation in methods.values():
            named = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
            assert named == set(re.findall(r"\{(\w+)\}", path))
            assert operation["summary"]
            assert {"200", "202"} & set(operation["responses"])
            assert "401" in operation["responses"]
            assert len({(one["name"], one["in"]) for one in operation["parameters"]}) == len(operation["parameters"])
    for name in {name for operation in operations for one in operation.get("security", []) for name in one}:
        assert name in described["components"]["securitySchemes"]


def references(value: object) -> list[str]:
    match value:
        case {"$ref": str(reference)}:
            return [reference]
        case dict():
            return [reference for one in value.values() for reference in references(one)]
        case list():
            return [reference for one in value for reference in references(one)]
        case _:
            return []


def resolved(document: Any, reference: str) -> object:  # noqa: ANN401  of JSON
    for part in reference.removeprefix("#/").split("/"):
        document = document.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(document, dict) else None
    return document


def test_durations_are_seconds(described: dict[str, Any]) -> None:
    text = json.dumps(described)

    assert '"description": "seconds"' in text
    assert '"format": "duration"' not in text


def test_every_answer_is_as_it_was_described(app: Rowlock, db: Db) -> None:
    filled = fill(db, "harmless", name="harmless")
    things: dict[str, list[Any]] = {
        "/jobs/{id}": filled.jobs,
        "/workflows/{id}": filled.workflows,
        "/schedules/{name:path}": filled.schedules,
    }

    wrong = {}
    with browsing(Dashboard(app, auth=ann)) as browser:
        for page in PAGES:
            asked = {"/schedules-preview": "?rule=0+3+*+*+*", "/jobs/preview": "?verb=retry"}.get(page.path, "")
            for thing in things.get(page.path, [""]):
                path = re.sub(r"\{.*?\}", quote(str(thing)), page.path)
                answer = browser.get(f"/api{path}{asked}")
                fault = misfit(page.shows, answer.json())
                if answer.status_code != 200 or fault:
                    wrong[path] = fault or answer.text

    assert wrong == {}


def misfit(kind: type[Any], answer: object) -> str | None:
    """What is wrong with an answer, by the same model that its schema is made of."""
    try:
        TypeAdapter(kind).validate_json(json.dumps(answer))
    except ValueError as error:
        return str(error)[:500]
    return None


def test_below_a_mount_it_says_where_it_is() -> None:
    with browsing(Dashboard(Rowlock("postgresql://127.0.0.1:1/x"), auth=ann), root_path="/ops") as browser:
        answer = browser.get("/ops/api/openapi.json")

    assert answer.json()["servers"] == [{"url": "/ops"}]


# Signals


def send(browser: Browser, body: bytes, *, delivery: str = "msg_1", key: bytes = KEY, **headers: str) -> Any:  # noqa: ANN401  httpx's
    timestamp = str(int(datetime.now(UTC).timestamp()))
    signed = hmac.new(key, f"{delivery}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    said = {"webhook-id": delivery, "webhook-timestamp": timestamp}
    said |= {"webhook-signature": f"v1,{base64.b64encode(signed).decode()}", "content-type": "application/json"}
    return browser.post(SIGNALS, content=body, headers={**said, **headers})


def test_a_signal_that_is_signed_is_stored_once_and_needs_no_visitor(app: Rowlock, db: Db) -> None:
    job = put_workflow(db, "waiting")
    body = json.dumps({"to": str(job), "signal": "paid", "payload": {"amount": 120}}).encode()

    with browsing(Dashboard(app, auth=lambda _request: None, webhooks=[SECRET])) as browser:
        first, again = send(browser, body), send(browser, body)
        foreign = send(browser, body, delivery="msg_2", origin="http://shop.example")

    assert (first.status_code, first.json()) == (202, {"says": f"signal paid is stored for {job}"})
    assert again.status_code == 200
    assert "stored before" in again.json()["says"]
    assert foreign.status_code == 202
    assert not any("set-cookie" in answer.headers for answer in (first, again, foreign))
    stored = db.execute("select name, payload, key from rowlock.signals order by number").fetchall()
    assert stored == [("paid", {"amount": 120}, "webhook:msg_1"), ("paid", {"amount": 120}, "webhook:msg_2")]


def test_a_signal_that_is_not_is_refused_in_a_sentence(app: Rowlock, db: Db) -> None:
    plain = put(db)
    ours = json.dumps({"to": str(put_workflow(db, "waiting")), "signal": "paid"}).encode()
    nobody = json.dumps({"to": str(uuid4()), "signal": "paid"}).encode()
    no_workflow = json.dumps({"to": str(plain), "signal": "paid"}).encode()

    with browsing(Dashboard(app, auth=ann, webhooks=[SECRET])) as browser:
        answers = [
            send(browser, ours, key=b"another secret, of 32 bytes too."),
            browser.post(SIGNALS, content=ours),
            send(browser, b"{}"),
            send(browser, nobody),
            send(browser, no_workflow),
            send(browser, b"x" * 1_000_001),
            browser.get(SIGNALS),
        ]

    assert [answer.status_code for answer in answers] == [401, 400, 400, 404, 409, 413, 405]
    assert all("Traceback" not in answer.text for answer in answers)
    assert db.execute("select count(*) from rowlock.signals").fetchone() == (0,)


def test_without_secrets_there_is_no_such_address(app: Rowlock) -> None:
    with browsing(Dashboard(app, auth=lambda _request: None)) as stranger:
        nobody = send(stranger, b"{}")
    with browsing(Dashboard(app, auth=ann)) as browser:
        known = browser.post(SIGNALS, json={}, headers={"authorization": "Bearer x"})

    assert (nobody.status_code, known.status_code) == (401, 404)


def test_strangers_see_neither_the_version_nor_the_pages() -> None:
    dashboard = Dashboard(Rowlock("postgresql://127.0.0.1:1/x"), auth=Tokens([]))
    with browsing(dashboard, base_url="https://localhost") as browser:
        login, missing = browser.get("/login"), browser.get("/static/x/nothing.js")

    assert version("rowlock") not in login.text
    assert 'href="/jobs"' not in login.text
    assert (missing.status_code, missing.headers["content-type"]) == (404, "text/plain; charset=utf-8")
    assert login.headers["strict-transport-security"] == "max-age=31536000"


def test_the_licences_of_what_others_have_made_are_listed_and_shipped(described: dict[str, Any]) -> None:
    assert "/api/licences" in described["paths"]
    assert {one.part: len(one.text) > 500 for one in LICENCES} == {"uPlot": True, "idiomorph": True, "Inter": True}
