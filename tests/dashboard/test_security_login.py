"""Logging in and out: tokens that are kept as hashes, sessions that rotate and end, guesses that are not heard."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator

import httpx
import psycopg
import pytest

from rowlock import Rowlock
from rowlock.dashboard import Dashboard, Tokens, Visitor
from rowlock.dashboard.access.cookies import CSRF, SESSION
from rowlock.dashboard.access.login_audit import LoginAudit, LoginEvent
from rowlock.dashboard.access.tokens import IDLE, LONGEST, LoginLimiter, new_token
from rowlock.errors import InvalidOption
from tests.dashboard.browser import OURS, Browser, browsing
from tests.depth import deep

LOOK = "/api/openapi.json"  # needs a visitor and no database


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def made() -> tuple[str, str]:
    return new_token("ann", "operator")


@pytest.fixture
def tokens(made: tuple[str, str], clock: Clock) -> Tokens:
    return Tokens([made[1]], clock=clock)


@pytest.fixture
def browser(tokens: Tokens) -> Iterator[Browser]:
    with browsing(Dashboard(Rowlock("postgresql://127.0.0.1:1/x"), auth=tokens)) as browser:
        yield browser


Enter = Callable[..., httpx.Response]


@pytest.fixture
def enter(browser: Browser, made: tuple[str, str]) -> Enter:
    """Loads the page and sends its form."""

    def sent(token: str | None = None, **fields: str) -> httpx.Response:
        return log_in(browser, token or made[0], **fields)

    return sent


def log_in(browser: Browser, token: str, **fields: str) -> httpx.Response:
    csrf = re.findall(r'name="csrf" value="([^"]+)"', browser.get("/login").text)[-1]
    return browser.post("/login", data={"token": token, "csrf": csrf, **fields}, headers=OURS)


def set_cookies(answer: httpx.Response) -> dict[str, str]:
    return {name.partition("=")[0]: name for name in answer.headers.get_list("set-cookie")}


def test_a_token_becomes_a_session_and_the_page_that_was_wanted(browser: Browser, enter: Enter) -> None:
    asked = browser.get("/jobs?queue=a%2Fb&x=1")
    answer = enter(next="/jobs?queue=a%2Fb&x=1")

    assert (asked.status_code, asked.headers["location"]) == (303, "/login?next=%2Fjobs%3Fqueue%3Da%252Fb%26x%3D1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs?queue=a%2Fb&x=1")
    session = set_cookies(answer)[SESSION]
    assert session.partition(";")[2].lower() == f" httponly; max-age={IDLE}; path=/; samesite=strict"
    assert browser.get(LOOK).status_code == 200


@pytest.mark.parametrize(
    "wanted",
    [
        *("//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", "evil", "", "\\\\evil"),
        *("/\t/evil.example", "/\n/evil.example", " //evil.example", "/\\/evil", "/ok\\evil", "/a b", "/" + "a" * 3000),
    ],
)
def test_nobody_is_sent_to_another_site(browser: Browser, enter: Enter, wanted: str) -> None:
    page = browser.get("/login", params={"next": wanted})
    answer = enter(next=wanted)

    assert answer.headers["location"] == "/"
    assert 'name="next" value="/"' in page.text


def test_below_a_mount_everything_stays_below_it(tokens: Tokens, made: tuple[str, str]) -> None:
    dashboard = Dashboard(Rowlock("postgresql://127.0.0.1:1/x"), auth=tokens)
    with browsing(dashboard, root_path="/ops") as browser:
        asked = browser.get("/ops/jobs")
        browser.get("/ops/login")
        fields = {"token": made[0], "csrf": browser.http.cookies[CSRF], "next": "/jobs"}
        answer = browser.post("/ops/login", data=fields, headers=OURS)

    assert asked.headers["location"] == "/ops/login?next=%2Fjobs"
    assert answer.headers["location"] == "/ops/jobs"
    assert "path=/ops;" in set_cookies(answer)[SESSION].lower()


def test_the_session_and_the_token_of_forms_are_new_after_each_login(browser: Browser, enter: Enter) -> None:
    browser.http.cookies.set(SESSION, "fixed-by-somebody-else", domain="localhost.local")
    browser.get("/login")
    before = browser.http.cookies[CSRF]

    first = set_cookies(enter())[SESSION]
    second = set_cookies(enter())[SESSION]
    browser.get("/nowhere")

    assert first.partition(";")[0] != second.partition(";")[0]
    assert "fixed" not in first + second
    assert browser.http.cookies[CSRF] != before


def test_what_is_kept_and_sent_does_not_hold_the_token(tokens: Tokens, made: tuple[str, str], enter: Enter) -> None:
    token, line = made

    answer = enter()

    assert token not in line
    assert token not in "".join(answer.headers.get_list("set-cookie"))
    assert token not in repr(tokens)
    assert token not in str(vars(tokens))


def test_a_login_from_another_site_or_without_its_form_is_refused(browser: Browser, made: tuple[str, str]) -> None:
    browser.get("/login")
    fields = {"token": made[0], "csrf": browser.http.cookies[CSRF]}
    foreign = [{"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}, {"origin": "null"}, {}]

    answers = [browser.post("/login", data=fields, headers=headers) for headers in foreign]
    bare = browser.post("/login", data={"token": made[0]}, headers=OURS)
    bad = browser.post("/login", content=b"token=\xff", headers=OURS)
    many = browser.post("/login", content=b"a=1&" * 30, headers=OURS)

    assert [answer.status_code for answer in (*answers, bare)] == [403] * 5
    assert [bad.status_code, many.status_code] == [400, 400]
    assert not any(SESSION in set_cookies(answer) for answer in (*answers, bare))


def test_the_form_of_the_login_works_also_where_a_browser_only_has_an_origin(browser: Browser) -> None:
    page = browser.get("/login")

    assert page.headers["referrer-policy"] == "same-origin"
    assert page.headers["cache-control"] == "no-store"


def test_a_bearer_token_is_who_it_is_and_needs_no_form(browser: Browser, made: tuple[str, str]) -> None:
    right = browser.get(LOOK, headers={"authorization": f"Bearer {made[0]}"})
    wrong = [
        browser.get(LOOK, headers=[(b"authorization", said.encode("latin-1"))])
        for said in ("Bearer", "Bearer ", "Bearer x", f"Basic {made[0]}", made[0], f"Bearer {made[1]}", "bearer \xe9")
    ]

    assert right.status_code == 200
    assert [answer.status_code for answer in wrong] == [401] * len(wrong)


# Sessions end


def test_a_session_that_is_not_used_ends_and_one_that_is_goes_on(browser: Browser, enter: Enter, clock: Clock) -> None:
    enter()
    renewed = []
    for _ in range(4):
        clock.now += IDLE - 1
        renewed.append(SESSION in set_cookies(browser.get(LOOK)))

    clock.now += IDLE + 1
    ended = browser.get(LOOK)

    assert renewed == [True] * 4
    assert ended.status_code == 401


def test_a_session_that_was_seen_just_now_is_not_given_anew(browser: Browser, enter: Enter, clock: Clock) -> None:
    enter()
    clock.now += 60

    answer = browser.get(LOOK)

    assert (answer.status_code, set_cookies(answer)) == (200, {})


@deep
def test_no_session_outlives_its_week(browser: Browser, enter: Enter, clock: Clock) -> None:
    enter()
    begun = clock.now
    while clock.now + IDLE - 1 <= begun + LONGEST:
        clock.now += IDLE - 1
        assert browser.get(LOOK).status_code == 200

    clock.now = begun + LONGEST + 1
    assert browser.get(LOOK).status_code == 401


def test_who_has_logged_out_is_out_wherever_the_cookie_is(browser: Browser, enter: Enter, clock: Clock) -> None:
    enter()
    kept = browser.http.cookies[SESSION]
    browser.get("/nowhere")
    csrf = browser.http.cookies[CSRF]

    stayed = browser.post("/logout", headers=OURS)
    foreign = browser.post("/logout", data={"csrf": csrf}, headers={"sec-fetch-site": "cross-site"})
    left = browser.post("/logout", data={"csrf": csrf}, headers=OURS)
    clock.now += IDLE - 10
    again = browser.get(LOOK, headers={"cookie": f"{SESSION}={kept}"})

    assert [stayed.status_code, foreign.status_code, left.status_code] == [403, 403, 303]
    assert left.headers["location"] == "/login"
    assert again.status_code == 401


@pytest.mark.parametrize("cookie", ["", ".", "é", "a.b.c.d.e", "....", "0" * 5000, '"', "\x80"])
def test_a_cookie_that_is_not_by_us_is_nobodys(browser: Browser, cookie: str) -> None:
    answer = browser.send(
        "GET", LOOK, headers=[(b"host", b"localhost"), (b"cookie", f"{SESSION}={cookie}".encode("latin-1"))]
    )

    assert answer.status_code == 401


def test_a_cookie_that_was_changed_or_signed_by_another_is_nobodys(
    browser: Browser, enter: Enter, made: tuple[str, str]
) -> None:
    enter()
    mine = browser.http.cookies[SESSION]
    digest, session, begun, seen, signature = mine.split(".")
    changed = [
        ".".join((digest, session, begun, str(int(seen) + 1), signature)),
        ".".join((digest[::-1], session, begun, seen, signature)),
        mine[:-1] + ("0" if mine[-1] != "0" else "1"),
        Tokens([made[1]]).begin(made[0]),
    ]

    answers = [browser.get(LOOK, headers={"cookie": f"{SESSION}={cookie}"}) for cookie in changed]

    assert [answer.status_code for answer in answers] == [401] * 4


def test_with_a_secret_sessions_outlive_the_process_but_not_the_token(made: tuple[str, str]) -> None:
    token, line = made
    cookie = Tokens([line], secret="sixteen letters!").begin(token)  # noqa: S106  of a test

    again, gone = Tokens([line], secret="sixteen letters!"), Tokens([], secret="sixteen letters!")  # noqa: S106
    answers = []
    for tokens in (again, gone):
        with browsing(Dashboard(Rowlock("postgresql://127.0.0.1:1/x"), auth=tokens)) as browser:
            answers.append(browser.get(LOOK, headers={"cookie": f"{SESSION}={cookie}"}).status_code)

    assert answers == [200, 401]


# Guesses


def test_after_ten_wrong_tokens_others_are_not_heard_for_a_while_and_the_right_one_is(
    browser: Browser, enter: Enter, made: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "rowlock.dashboard")
    wrong = [enter(f"wrong-{number}") for number in range(12)]

    bearer = browser.get(LOOK, headers={"authorization": f"Bearer {made[0]}"})
    right = enter()

    assert [answer.status_code for answer in wrong] == [401] * 10 + [429] * 2
    assert wrong[-1].headers["retry-after"] == "60"
    assert (right.status_code, bearer.status_code) == (303, 200)
    assert [line for line in caplog.messages if "wrong token from" in line][-1].endswith("10 in the last minute")
    assert len([line for line in caplog.messages if "wrong token from" in line]) == 10
    assert [
        line for line in caplog.messages if "'ann' logged in as operator" in line or "ann logged in as operator" in line
    ]


def test_who_is_logged_in_is_not_kept_out_by_guesses(browser: Browser, enter: Enter) -> None:
    enter()

    guesses = [browser.get(LOOK, headers={"authorization": f"Bearer {number}"}).status_code for number in range(11)]

    assert guesses == [401] * 10 + [429]
    assert browser.get(LOOK).status_code == 200


def test_guesses_are_counted_by_address_and_forgotten_in_a_minute() -> None:
    clock = Clock()
    attempts = LoginLimiter(most=2, span=60, clock=clock)

    for address in ("10.0.0.1", "10.0.0.1", "2001:db8::1", "2001:db8::ffff:2", "10.0.0.2"):
        attempts.failed(address)
    soon = [attempts.too_many(one) for one in ("10.0.0.1", "10.0.0.2", "2001:db8::3", "2001:db8:0:1::1", "?")]
    clock.now += 61
    later = attempts.too_many("10.0.0.1")

    assert soon == [True, False, True, False, False]
    assert later is False


# Lines


@pytest.mark.parametrize(
    "line", ["", "ann", "ann:operator", "ann:operator:abc", f"ann:{'0' * 64}", f"ann:operator:{'G' * 64}", "a:b:c:d"]
)
def test_a_line_that_is_none_is_refused_without_being_repeated(line: str) -> None:
    with pytest.raises(InvalidOption, match="NAME:ROLE:SHA256") as refused:
        Tokens([line])

    assert not line or line not in str(refused.value)


def test_a_role_that_there_is_not_is_refused_and_so_are_odd_names_and_short_secrets() -> None:
    with pytest.raises(InvalidOption, match="is none of viewer, operator, admin"):
        Tokens([f"ann:root:{'0' * 64}"])
    with pytest.raises(InvalidOption, match="is none of viewer, operator, admin"):
        Visitor("ann", "root")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="must be 1 to 100 characters"):
        new_token("ann:x", "viewer")
    with pytest.raises(InvalidOption, match="are one str"):
        Tokens("ann:operator:x")
    with pytest.raises(InvalidOption, match="16 characters"):
        Tokens([], secret="short")  # noqa: S106  of a test


def test_logins_logouts_and_wrong_tokens_are_in_the_audit_and_never_more_than_are_counted(
    app: Rowlock, tokens: Tokens, made: tuple[str, str]
) -> None:
    with browsing(Dashboard(app, auth=tokens)) as browser:
        log_in(browser, made[0])
        browser.get("/audit")
        browser.post("/logout", data={"csrf": browser.csrf}, headers=OURS)
        for number in range(6):
            log_in(browser, f"wrong-{number}")
            browser.get(LOOK, headers={"authorization": f"Bearer wrong-{number}"})
        log_in(browser, made[0])
        page = browser.get("/audit").text

    events = list(reversed(app.jobs.events(limit=100)))
    assert [(one.kind, one.actor) for one in events] == [
        ("logged_in", "ann"),
        ("logged_out", "ann"),
        *[("login_failed", "unknown")] * 10,  # of twelve: after these an address has to wait
        ("logged_in", "ann"),
    ]
    assert events[0].details == {"from": "127.0.0.1", "role": "operator"}
    assert "logged in from 127.0.0.1 as operator" in page
    assert "tried a wrong token from 127.0.0.1" in page


def test_of_wrong_tokens_from_many_addresses_no_more_than_sixty_a_minute_are_written(app: Rowlock) -> None:
    clock = Clock()
    book = LoginAudit(app.database, clock=clock)

    async def flood() -> None:
        async with app:
            await book.write([LoginEvent("login_failed", f"10.0.0.{number}") for number in range(70)])
            clock.now += 60
            await book.write([LoginEvent("login_failed", "10.0.1.1")])

    asyncio.run(flood())

    assert len(app.jobs.events(limit=100)) == 61


def test_a_login_that_cannot_be_written_keeps_nobody_out(
    app: Rowlock, tokens: Tokens, made: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(app.database.conninfo(), autocommit=True) as db:
        db.execute("alter table rowlock.events rename to away")

    with browsing(Dashboard(app, auth=tokens)) as browser:
        entered = [log_in(browser, made[0]).status_code for _ in range(2)]

    assert entered == [303, 303]
    assert len([line for line in caplog.messages if "cannot be written into the audit" in line]) == 1
