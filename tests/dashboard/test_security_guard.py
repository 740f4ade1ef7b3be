"""What the guard lets through, and what it never does: hosts, forms, methods, sizes, and its own failures."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.types import Message

from rowlock import Rowlock
from rowlock.dashboard import Dashboard, Visitor
from rowlock.dashboard.access.cookies import CSRF
from rowlock.dashboard.access.visitor import Auth
from rowlock.dashboard.page import DashboardPage, Params
from rowlock.errors import InvalidOption
from tests.dashboard.browser import OURS, Browser, browsing

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def wrong_headers(answer: httpx.Response) -> dict[str, str]:
    """Those of the headers above that an answer has otherwise."""
    return {name: answer.headers.get(name, "") for name, value in HEADERS.items() if answer.headers.get(name) != value}


def ann(_request: object) -> Visitor:
    return Visitor("ann", "admin")


@pytest.fixture
def nowhere() -> Rowlock:
    """An app without a database: nobody gets as far as that."""
    return Rowlock("postgresql://ada:hunter2@127.0.0.1:1/shop")


@pytest.fixture
def door(nowhere: Rowlock) -> Iterator[Browser]:
    """A browser of ann before what needs no database."""
    with browsing(Dashboard(nowhere, auth=ann)) as browser:
        yield browser


@pytest.fixture
def stranger(nowhere: Rowlock) -> Iterator[Browser]:
    with browsing(Dashboard(nowhere, auth=lambda _request: None)) as browser:
        yield browser


# Hosts


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8780", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8780"])
def test_the_loopback_is_answered_by_any_of_its_names(door: Browser, host: str) -> None:
    answer = door.get("/api/openapi.json", headers={"host": host})

    assert answer.status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "localhost.", "localhost.evil.example", "localhost:80:80", "localhost:evil", "localhost:"),
        *("", "@localhost", "localhost@evil.example", "127.0.0.1.evil.example", "::1", "[::1", "[::1]evil", "127.1"),
        *("localhost/", "localhost\\evil", "localhost,evil.example", "0.0.0.0", "[::]", "2130706433"),  # noqa: S104
    ],
)
def test_no_other_host_is(door: Browser, host: str) -> None:
    answer = door.get("/api/openapi.json", headers={"host": host})

    assert answer.status_code == 421
    assert "set-cookie" not in answer.headers
    assert wrong_headers(answer) == {}


def test_two_hosts_are_none_and_no_host_is_none(door: Browser) -> None:
    two = door.send("GET", "/api/openapi.json", headers=[("host", "localhost"), ("host", "localhost")])
    none = door.http.build_request("GET", "/api/openapi.json")
    del none.headers["host"]

    assert two.status_code == 421
    assert door._runner.run(door.http.send(none)).status_code == 421


def test_a_host_that_was_allowed_is_answered_and_its_neighbours_are_not(nowhere: Rowlock) -> None:
    with browsing(Dashboard(nowhere, auth=ann, hosts=["Jobs.Example.org"])) as browser:
        hosts = ("jobs.example.org:443", "localhost", "example.org", "x.jobs.example.org", "jobs.example.org.")
        answers = [browser.get("/api/openapi.json", headers={"host": host}) for host in hosts]

    assert [answer.status_code for answer in answers] == [200, 200, 421, 421, 421]


@pytest.mark.parametrize("host", ["http://x.org", "x.org:80", "*", "x.org/", "", ".x.org", "a b"])
def test_a_host_that_is_no_bare_name_cannot_be_allowed(nowhere: Rowlock, host: str) -> None:
    with pytest.raises(InvalidOption, match="not a bare host name"):
        Dashboard(nowhere, auth=ann, hosts=[host])


def test_hosts_are_several(nowhere: Rowlock) -> None:
    with pytest.raises(InvalidOption, match="is one str"):
        Dashboard(nowhere, auth=ann, hosts="x.org")


# Strangers


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_a_stranger_is_told_the_same_of_everything(stranger: Browser, method: str) -> None:
    paths = ("/", "/jobs", "/api/jobs", "/nowhere", "/api/nowhere", "/login", "/logout", "/api/openapi.json")

    answers = [stranger.request(method, path, headers={"accept": "application/json"}) for path in paths]

    assert {answer.status_code for answer in answers} == {401}
    assert {answer.headers["www-authenticate"] for answer in answers} == {"Bearer"}
    assert [answer.text for answer in answers] == ["" if method == "HEAD" else '{"error":"log in first"}'] * len(paths)
    assert [wrong_headers(answer) for answer in answers] == [{}] * len(paths)


@pytest.mark.parametrize(
    "path",
    [
        *("/static/../jobs", "/static/%2e%2e/jobs", "/static/..%2fjobs", "/login/../jobs", "/login/", "//login"),
        *("/%2flogin", "/login%00", "/static", "//static/x", "/static/%5c..%5cjobs", "/webhooks/signals", "/webhooks/"),
        *("//evil.example/jobs", "/api//jobs", "/./jobs", "/jobs/", "/JOBS", "/api", "/api/"),
    ],
)
def test_no_odd_path_leads_a_stranger_past_the_guard(stranger: Browser, path: str) -> None:
    answer = stranger.get(httpx.URL("http://localhost", raw_path=path.encode()))

    assert answer.status_code in {400, 401, 404}
    assert "location" not in answer.headers


def test_a_visitor_hears_of_unknown_pages_and_methods_in_sentences(door: Browser) -> None:
    unknown = door.get("/api/nowhere")
    method = door.request("PUT", "/api/jobs", headers=OURS)
    options = door.request("OPTIONS", "/jobs")

    assert (unknown.status_code, unknown.json()) == (404, {"error": "there is no page at this address"})
    assert (method.status_code, method.json()) == (405, {"error": "this address does not take that method"})
    assert options.status_code == 405
    assert "GET" in method.headers["allow"]
    assert [wrong_headers(answer) for answer in (unknown, method, options)] == [{}, {}, {}]


def test_head_is_answered_as_get_without_a_body_also_to_who_would_watch(client: Browser) -> None:
    answer = client.request("HEAD", "/", headers={"accept": "text/event-stream"})

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")


def test_a_web_socket_is_closed(nowhere: Rowlock) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    asyncio.run(Dashboard(nowhere, auth=ann)({"type": "websocket", "path": "/", "headers": []}, receive, send))

    assert sent == [{"type": "websocket.close", "code": 1008}]


# Forms


def test_a_form_of_another_site_is_refused_though_it_knew_the_token(client: Browser, app: Rowlock) -> None:
    fields = {"queue": "mail", "csrf": client.csrf}
    foreign: list[dict[str, str]] = [
        {},
        {"origin": "null"},
        {"origin": "http://evil.example"},
        {"origin": "http://localhost.evil.example"},
        {"origin": "http://localhost@evil.example"},
        {"origin": "http://localhost:81"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "cross-site", "origin": "http://localhost"},
        {"sec-fetch-site": "cross-site", "authorization": "Bearer x"},
        {"origin": "http://evil.example", "authorization": "Bearer x"},
        {"origin": "null", "authorization": "Bearer x"},
    ]

    answers = [client.post("/queues/pause", data=fields, headers=headers) for headers in foreign]

    assert [answer.status_code for answer in answers] == [403] * len(foreign)
    assert app.queues.pauses() == ()


def test_a_form_without_the_token_is_refused(client: Browser, app: Rowlock) -> None:
    known = client.csrf
    tokens = ["", "x", "é", "x" * 43, known[:-1], known + "x", known.swapcase()]

    answers = [client.post("/queues/pause", data={"queue": "mail", "csrf": said}, headers=OURS) for said in tokens]
    none = client.post("/queues/pause", data={"queue": "mail"}, headers=OURS)
    number = client.post("/api/queues/pause", json={"queue": "mail", "csrf": 1}, headers=OURS)

    assert [answer.status_code for answer in (*answers, none, number)] == [403] * 9
    assert all("too old" in answer.text for answer in answers)
    assert app.queues.pauses() == ()


def test_a_token_that_we_have_not_made_is_none(door: Browser) -> None:
    cookies = ["é", "", "x", '"', "a" * 5000]

    answers = [
        door.send(
            "POST",
            "/queues/pause",
            data={"queue": "mail", "csrf": cookie},
            headers=[(b"host", b"localhost"), (b"cookie", f"{CSRF}={cookie}".encode("latin-1")), *_bytes(OURS)],
        )
        for cookie in cookies
    ]

    assert [answer.status_code for answer in answers] == [403] * len(cookies)


def _bytes(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


@pytest.mark.parametrize("headers", [OURS, {"origin": "http://localhost"}])
def test_a_form_of_our_own_does_what_it_says(client: Browser, app: Rowlock, headers: dict[str, str]) -> None:
    fields = {"queue": "mail", "anyway": "1", "csrf": client.csrf}
    answer = client.post("/queues/pause", data=fields, headers=headers)

    assert answer.status_code == 200, answer.text
    assert [(pause.queue, pause.by) for pause in app.queues.pauses()] == [("mail", "ann")]


def test_the_cookie_of_forms_is_for_the_browser_alone(door: Browser) -> None:
    answer = door.get("/nowhere")

    assert answer.headers["set-cookie"].partition(";")[2].lower() == " httponly; path=/; samesite=strict"


def test_over_tls_cookies_are_never_sent_without_and_stay_below_the_mount(nowhere: Rowlock) -> None:
    dashboard = Dashboard(nowhere, auth=ann)
    with browsing(dashboard, base_url="https://localhost", root_path="/ops/jobs") as browser:
        answer = browser.get("/ops/jobs/nowhere")

    assert answer.status_code == 404
    assert (
        answer.headers["set-cookie"].partition(";")[2].lower() == " httponly; path=/ops/jobs; samesite=strict; secure"
    )


@pytest.mark.parametrize("root", ["//evil.example", "/\\evil.example", "/a;b", "/a\r\nx: y", "evil", "/a//b", "/a/"])
def test_a_mount_that_could_be_another_site_is_refused(nowhere: Rowlock, root: str) -> None:
    with browsing(Dashboard(nowhere, auth=lambda _request: None), root_path=root) as browser:
        answer = browser.get("/")

    assert answer.status_code == 400
    assert "location" not in answer.headers


# Sizes and shapes


def test_a_body_over_a_megabyte_is_refused_whether_it_says_so_or_not(door: Browser) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 100_000

    program = {"authorization": "Bearer x"}
    said = door.post("/api/queues/pause", content=b"x" * 1_000_001, headers=program)
    unsaid = door.post("/api/queues/pause", content=chunks(), headers=program)

    assert (said.status_code, unsaid.status_code) == (413, 413)
    assert "1,000,000 bytes" in said.text
    assert "1,000,000 bytes" in unsaid.text


@pytest.mark.parametrize("length", ["-1", "1e3", "²", "0x10", "1 1", "99999999999999999999"])
def test_a_length_that_is_none_is_refused(door: Browser, length: str) -> None:
    headers = [(b"host", b"localhost"), (b"content-length", length.encode("latin-1")), *_bytes(OURS)]

    answer = door.send("POST", "/queues/pause", headers=headers)

    assert answer.status_code == 400


def test_a_body_of_two_lengths_is_refused_and_so_is_one_where_nothing_can_be_sent(door: Browser) -> None:
    host = ("host", "localhost")

    two = door.send("POST", "/queues/pause", headers=[host, ("content-length", "3"), ("transfer-encoding", "chunked")])
    twice = door.send("POST", "/queues/pause", headers=[host, ("content-length", "3"), ("content-length", "3")])
    none = door.request("GET", "/jobs", content=b"x")

    assert (two.status_code, twice.status_code, none.status_code) == (400, 400, 400)


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/json", b"[" * 10_000 + b"]" * 10_000, 400),
        ("application/json", b'{"a":' * 10_000 + b"1" + b"}" * 10_000, 400),
        ("application/json", b"{", 400),
        ("application/json", b"\xff", 400),
        ("application/json", b'{"queue": NaN}', 400),
        ("application/json", b'{"queue": "\\ud800"}', 400),
        ("application/json", b"[1]", 415),
        ("application/json", b'"mail"', 415),
        ("text/plain", b'{"queue": "mail"}', 415),
        ("multipart/form-data; boundary=x", b"--x--", 415),
        ("application/x-www-form-urlencoded", b"&".join(b"a=1" for _ in range(2_001)), 400),
        ("application/x-www-form-urlencoded", b"queue=\xff", 400),
        ("application/json", b'{"queue": 1}', 400),
        ("application/json", b"{}", 400),
        ("", b"{}", 400),
    ],
)
def test_a_body_that_makes_no_sense_is_refused_in_a_sentence(
    door: Browser, kind: str, body: bytes, status: int
) -> None:
    headers = {"content-type": kind, "authorization": "Bearer x"}

    answer = door.post("/api/queues/pause", content=body, headers=headers)

    assert answer.status_code == status
    assert list(answer.json()) == ["error"]


def test_an_address_that_asks_for_too_much_or_for_nul_is_refused(door: Browser) -> None:
    long = door.get("/jobs", params={"q": "x" * 20_000})
    nul = [door.get(path) for path in ("/jobs/%00", "/jobs?queue=%00", "/api/jobs?task=a%00b")]

    assert long.status_code == 414
    assert [answer.status_code for answer in nul] == [400, 400, 400]


# Its own failures


class Broken(RuntimeError):
    """As an auth hook breaks."""


def broken(_request: object) -> Visitor:
    raise Broken("postgresql://ada:hunter2@db/shop does not answer")


async def also_broken(request: object) -> Visitor:
    return broken(request)


@pytest.mark.parametrize(
    "auth",
    [broken, also_broken, lambda _request: True, lambda _request: "ann", lambda _request: {"role": "admin"}],
    ids=["raises", "raises later", "answers True", "answers a name", "answers a dict"],
)
def test_where_auth_breaks_nobody_passes_and_nothing_is_told(
    nowhere: Rowlock, auth: Auth, caplog: pytest.LogCaptureFixture
) -> None:
    with browsing(Dashboard(nowhere, auth=auth)) as browser:
        answers = [browser.get(path) for path in ("/", "/api/jobs", "/nowhere")]

    assert [answer.status_code for answer in answers] == [500, 500, 500]
    assert all(word not in answer.text for answer in answers for word in ("hunter2", "Traceback", "Broken", "db/shop"))
    assert [wrong_headers(answer) for answer in answers] == [{}, {}, {}]
    assert "auth has failed" in caplog.text


def test_auth_may_say_itself_what_to_do(nowhere: Rowlock) -> None:
    def elsewhere(_request: object) -> Visitor:
        raise HTTPException(303, "log in there", {"location": "/accounts/login"})

    with browsing(Dashboard(nowhere, auth=elsewhere)) as browser:
        answer = browser.get("/")

    assert (answer.status_code, answer.headers["location"]) == (303, "/accounts/login")


def test_what_breaks_inside_is_told_to_the_log_and_to_nobody_else(
    nowhere: Rowlock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def breaks(*_: object, **__: object) -> None:
        raise Broken("select * from secrets; password=hunter2")

    dashboard = Dashboard(nowhere, auth=ann)
    monkeypatch.setattr(dashboard.reader.database, "aconverse", breaks)
    with browsing(dashboard) as browser:
        page, api = browser.get("/workers"), browser.get("/api/workers")

    assert (page.status_code, api.status_code) == (500, 500)
    assert api.json() == {"error": "something went wrong; the log of the dashboard says what"}
    assert all(word not in page.text + api.text for word in ("hunter2", "Traceback", "secrets"))
    assert "Broken" in caplog.text
    assert wrong_headers(page) == {}


def test_even_what_cannot_be_said_is_kept_from_the_server_around_us(
    nowhere: Rowlock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise Broken("hunter2")

    dashboard = Dashboard(nowhere, auth=ann)
    monkeypatch.setattr(dashboard.endpoints, "html", breaks)
    with browsing(dashboard) as browser:
        answer = browser.get("/nowhere")

    assert (answer.status_code, answer.text) == (500, "something went wrong")
    assert wrong_headers(answer) == {}


def test_a_database_that_is_away_is_a_sentence_without_its_password(door: Browser) -> None:
    page, api = door.get("/workers"), door.get("/api/workers")

    assert (page.status_code, api.status_code) == (503, 503)
    assert "cannot be reached" in api.json()["error"]
    assert "hunter2" not in page.text + api.text


def test_no_name_in_a_request_can_write_a_line_of_the_log(nowhere: Rowlock, caplog: pytest.LogCaptureFixture) -> None:
    async def load(_context: object, _params: object) -> None:
        raise Broken

    page = DashboardPage("odd", "/odd/{name}", Params, dict, load, says="Breaks.")
    with caplog.at_level(logging.DEBUG, "rowlock"), browsing(Dashboard(nowhere, auth=ann, pages=[page])) as browser:
        browser.get("/odd/a%0aERROR%20all%20is%20lost%1b[2J")

    said = [record.getMessage() for record in caplog.records if record.name == "rowlock.dashboard"]
    assert said == [r"'GET' '/odd/a\nERROR all is lost\x1b[2J' failed"]
