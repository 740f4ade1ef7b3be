"""`rowlock dashboard`: who can reach it, who can log in, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest

from rowlock.dashboard.http import serve
from tests.cli.conftest import Type
from tests.cli.programs import Program, Shop
from tests.depth import deep
from tests.waiting import until

LINE = f"ann:operator:{'0' * 64}"


class Served:
    """A dashboard that runs, the link it printed, and a client for it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.link = until(lambda: program.out[:1] or ended(program), what="the link")[0]
        self.address, _, self.token = self.link.partition("/login")
        self.token = self.token.removeprefix("#")
        self.port = int(self.address.rpartition(":")[2])
        self.http = httpx.Client(base_url=self.address, headers={"authorization": f"Bearer {self.token}"}, timeout=30)

    def raw(self, *lines: str) -> socket.socket:
        """A connection on which these lines were sent."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        connection.sendall("".join(f"{line}\r\n" for line in lines).encode("latin-1"))
        return connection


def ended(program: Program) -> list[str]:
    assert program.process.poll() is None, program.errors
    return []


def answered(connection: socket.socket) -> str:
    """All that is sent before the other side hangs up."""
    with connection:
        said = b""
        while more := connection.recv(65536):
            said += more
    return said.decode("latin-1")


Start = Callable[..., Served]


@pytest.fixture
def start(shop: Shop, url: str) -> Iterator[Start]:
    """Starts a dashboard with these options."""
    with ExitStack() as after:

        def started(*options: str) -> Served:
            served = Served(shop.start("dashboard", "--app", "shop", "--url", url, "--port", "0", *options))
            after.callback(served.http.close)
            return served

        yield started


@pytest.fixture
def served(start: Start) -> Served:
    return start()


def test_on_this_machine_it_prints_one_link_that_logs_in_and_ends_with_ctrl_c(served: Served) -> None:
    page = served.http.get("/queues")
    stranger = httpx.get(f"{served.address}/api/queues")
    other = served.http.get("/queues", headers={"host": "evil.example"})

    served.program.signal(signal.SIGINT)
    code = served.program.ended()

    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/login#[\w-]{43}", served.link)
    assert served.program.out == [served.link]
    assert (page.status_code, stranger.status_code, other.status_code) == (200, 401, 421)
    assert "server" not in page.headers
    assert code == 0
    assert served.token not in served.program.errors
    assert "Traceback" not in served.program.errors


def test_it_ends_at_once_though_a_page_is_being_watched(served: Served) -> None:
    with served.http.stream("GET", "/queues", headers={"accept": "text/event-stream"}) as stream:
        events = stream.iter_lines()
        first = [next(events) for _ in range(4)]
        served.program.signal(signal.SIGTERM)
        rest = list(events)

    assert first[0] == "retry: 3000"
    assert "event: page" in first
    assert served.program.ended() == 0
    assert "Traceback" not in served.program.errors
    assert all(line == "" or line.startswith((":", "data:", "event:")) for line in rest)


def test_a_request_that_no_browser_sends_leads_nowhere(served: Served) -> None:
    host, close = f"host: 127.0.0.1:{served.port}", "connection: close"
    asked = [
        answered(served.raw("GET http://evil.example/api/jobs HTTP/1.1", host, close, "")),
        answered(served.raw("GET /api/jobs HTTP/1.1", host, "host: evil.example", close, "")),
        answered(served.raw("GET /api/jobs HTTP/1.0", close, "")),
        answered(served.raw("OPTIONS * HTTP/1.1", host, close, "")),
        answered(served.raw("CONNECT evil.example:443 HTTP/1.1", host, close, "")),
        answered(
            served.raw("POST /login HTTP/1.1", host, "content-length: 3", "transfer-encoding: chunked", close, "")
        ),
        answered(served.raw("GET /login\x01 HTTP/1.1", host, close, "")),
        answered(served.raw("nonsense", "")),
    ]

    statuses = [int(answer.split()[1]) for answer in asked]
    assert statuses[0] == 303
    assert "\r\nlocation: /login?next=http%253A" in asked[0]
    assert all(status in {400, 401, 403, 421} for status in statuses[1:]), statuses
    assert all("Traceback" not in answer for answer in asked)


def test_what_a_proxy_would_say_is_not_believed_of_anybody(served: Served) -> None:
    headers = {"x-forwarded-proto": "https", "x-forwarded-for": "10.9.9.9", "x-forwarded-host": "evil.example"}

    answer = served.http.get("/login", headers=headers)

    assert "secure" not in answer.headers["set-cookie"].lower()
    assert "evil" not in answer.text


def test_behind_a_proxy_that_is_named_its_word_counts(start: Start) -> None:
    served = start("--behind-proxy", "127.0.0.1")

    answer = served.http.get("/login", headers={"x-forwarded-proto": "https"})

    assert "secure" in answer.headers["set-cookie"].lower()


def test_read_only_it_shows_and_changes_nothing(start: Start) -> None:
    served = start("--read-only")

    looked = served.http.get("/api/queues")
    refused = served.http.post("/api/queues/pause", json={"queue": "mail"})

    assert (looked.status_code, refused.status_code) == (200, 403)
    assert "read-only" in refused.json()["error"]


@deep
def test_with_tokens_others_can_reach_it_under_names_that_are_allowed(shop: Shop, url: str) -> None:
    made = json.loads(shop.run("dashboard", "token", "ben", "--role", "viewer", "--json").output)
    shop.write("tokens", f"# who may look\n\n{made['line']}\n{LINE}\n")
    program = shop.start(
        *("dashboard", "--url", url, "--host", "0.0.0.0", "--port", "0"),  # noqa: S104  that is the point
        *("--tokens-file", "tokens", "--allow-host", "jobs.example.org"),
    )
    link = until(lambda: program.out[:1] or ended(program), what="the link")[0]
    port = int(re.findall(r":(\d+)/", link)[0])

    ben = {"authorization": f"Bearer {made['token']}"}
    seen = httpx.get(f"http://127.0.0.1:{port}/api/queues", headers={**ben, "host": "jobs.example.org"})
    refused = httpx.post(f"http://127.0.0.1:{port}/api/queues/pause", headers=ben, json={"queue": "mail"})
    elsewhere = httpx.get(f"http://127.0.0.1:{port}/api/queues", headers={**ben, "host": "evil.example"})

    assert link == f"http://jobs.example.org:{port}/login"
    assert (seen.status_code, refused.status_code, elsewhere.status_code) == (200, 403, 421)
    assert program.says("travel unencrypted")


def test_other_machines_are_refused_without_tokens_and_names(typed: Type, shop: Shop) -> None:
    shop.write("tokens", f"{LINE}\n")

    bare = [typed("dashboard", "--host", host) for host in ("0.0.0.0", "::", "10.0.0.1", "example.org")]  # noqa: S104
    nameless = typed("dashboard", "--host", "0.0.0.0", "--tokens-file", "tokens")  # noqa: S104

    assert [run.code for run in (*bare, nameless)] == [2] * 5
    assert all("they need tokens" in run.err for run in bare)
    assert "--allow-host" in nameless.err


def test_tokens_may_be_in_the_environment(typed: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROWLOCK_DASHBOARD_TOKENS", f"{LINE} ben:viewer:{'1' * 64}")

    known = typed("dashboard", "--host", "0.0.0.0")  # noqa: S104  refused for another reason
    monkeypatch.setenv("ROWLOCK_DASHBOARD_TOKENS", "ann:operator")
    wrong = typed("dashboard", "--host", "0.0.0.0", "--allow-host", "x.org")  # noqa: S104

    assert "--allow-host" in known.err
    assert (wrong.code, wrong.out) == (1, "")
    assert "NAME:ROLE:SHA256" in wrong.err


def test_what_makes_no_sense_is_a_sentence(typed: Type, shop: Shop, url: str) -> None:
    shop.write("empty", "# nobody\n")
    shop.write("cert.pem", "no certificate")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        busy = typed("dashboard", "--url", url, "--port", port)
    nobody = typed("dashboard", "--url", url, "--tokens-file", "empty")
    half = typed("dashboard", "--url", url, "--tls-cert", "cert.pem")
    tls = typed("dashboard", "--url", url, "--port", "0", "--tls-cert", "cert.pem", "--tls-key", "cert.pem")
    host = typed("dashboard", "--url", url, "--allow-host", "http://x.org")

    assert busy.is_one_sentence
    assert f"port {port} of 127.0.0.1 is taken" in busy.err
    assert "holds no token" in nobody.err
    assert (half.code, "give both" in half.err) == (2, True)
    assert "cannot be used" in tls.err
    assert "not a bare host name" in host.err


def test_without_a_database_there_is_no_dashboard(typed: Type, database_url: str) -> None:
    empty = typed("dashboard", "--url", database_url, "--port", "0")
    away = typed("dashboard", "--url", "postgresql://ada:hunter2@127.0.0.1:1/x", "--port", "0")

    assert empty.is_one_sentence
    assert "rowlock migrate" in empty.err
    assert away.is_one_sentence
    assert "hunter2" not in away.err


def test_a_token_is_printed_once_with_the_line_that_stands_for_it(typed: Type) -> None:
    plain = typed("dashboard", "token", "ann", "--role", "operator")
    wrong = typed("dashboard", "token", "ann:x")

    made = re.fullmatch(r"token  ([\w-]{43})\nline   (ann:operator:[0-9a-f]{64})\n", plain.out)
    assert made is not None
    assert made[1] not in made[2]
    assert wrong.is_one_sentence


def test_without_its_packages_a_sentence_says_which(typed: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[:2] == ["rowlock", "dashboard"]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette.exceptions", None)

    runs = [typed("dashboard"), typed("dashboard", "token", "ann")]
    demo = typed("demo", "nowhere")

    assert all(run.is_one_sentence for run in runs)
    assert "pip install 'rowlock[dashboard]'" in demo.err
    assert all("pip install 'rowlock[dashboard]'" in run.err for run in runs)
    with pytest.raises(ModuleNotFoundError, match=r"run: pip install 'rowlock\[dashboard\]'"):
        from rowlock.dashboard import Visitor  # noqa: F401, PLC0415  as an app of the reader's does


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104
        ("::", False),
        ("localhost.evil.example", False),
        ("192.168.0.1", False),
    ],
)
def test_the_loopback_is_known_by_its_addresses(host: str, *, is_ours: bool) -> None:
    assert serve.is_loopback(host) is is_ours
