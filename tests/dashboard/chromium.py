"""The dashboard in a real browser, driven by Playwright, on a furnished database with real workers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
_NAMES = ("chromium", "chromium-browser", "google-chrome")
# A busy machine draws slowly.
_PATIENCE = 60_000
_WIDE = (1440, 900)
# Chromium's advice on forms is no error of ours.
_ADVICE = ("verbose", "debug", "info", "log")
# Keeps what toasts say, which go away by themselves; and whatever our policy on content has blocked, on any page.
_EARS = """
    window.said = [];
    window.blocked = [];
    addEventListener("securitypolicyviolation", (event) => blocked.push(`${event.violatedDirective}: ${event.sample}`));
    new MutationObserver((changes) => {
        for (const node of changes.flatMap((change) => [...change.addedNodes])) {
            if (node.classList?.contains("toast")) said.push(node.firstChild.textContent);
        }
    }).observe(document, { childList: true, subtree: true });
"""


def find_chromium() -> str | None:
    """Where the browser is, if there is one: $ROWLOCK_CHROMIUM, else what PATH has."""
    return os.environ.get("ROWLOCK_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


needs_chromium = pytest.mark.skipif(
    find_chromium() is None,
    reason="no chromium on PATH: no page was seen in a browser (Debian: apt-get install chromium)",
)


@contextmanager
def started() -> Iterator[Browser]:
    """A browser of our own."""
    expect.set_options(timeout=_PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(),
            # As root there is no sandbox; a shared machine has a small /dev/shm.
            args=["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def program(*command: str) -> Iterator[str]:
    """A program of ours that prints the link to its dashboard; answers the link."""
    with _printing(*command) as lines:
        for line in lines:
            if found := re.search(r"http://\S+", line):
                yield found[0]
                return
        raise AssertionError(f"{' '.join(command)} ended and printed no link")


@dataclass(frozen=True)
class Shop:
    """A shop that has been open for a day: links to its dashboard for three visitors, and its database."""

    link: str
    operator: str
    viewer: str
    url: str


@contextmanager
def furnished() -> Iterator[Shop]:
    """The shop, with three workers, in a process of its own."""
    with _printing("tests.dashboard.scene", "0") as lines:
        yield Shop(*(next(lines).strip() for _ in fields(Shop)))


@contextmanager
def _printing(*command: str) -> Iterator[Iterator[str]]:
    """A program and the lines that it prints."""
    with subprocess.Popen(
        [sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            yield iter(process.stdout)
        finally:
            process.terminate()
            process.wait(60)


class Tab:
    """A tab that has logged in, and what went wrong in it."""

    def __init__(self, context: BrowserContext, link: str) -> None:
        context.set_default_timeout(_PATIENCE)
        context.add_init_script(_EARS)
        self.page: Page = context.new_page()
        self.errors: list[str] = []
        self.base = link.partition("/login")[0]
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append(f"a dialog: {dialog.message}"))
        self.page.goto(link)
        self.page.wait_for_url(re.compile(r"^(?!.*/login)"))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type not in _ADVICE:
            self.errors.append(_in_words(message))

    def go(self, path: str) -> Page:
        """Open a page, drawn to its end."""
        self.page.goto(self.base + path)
        self.page.wait_for_selector("h1")
        self.page.evaluate("document.fonts.ready")
        return self.page

    def toast(self) -> str:
        """What an action said, the oldest first."""
        # Our policy forbids what Playwright's own waiting for an expression needs.
        return str(until(lambda: self.page.evaluate("said.shift() ?? null"), what="a toast", limit=_PATIENCE / 1000))

    @contextmanager
    def refused(self, status: int) -> Iterator[None]:
        """Something is refused with this status here: the browser says so on its console, and nothing else."""
        before = [*self.errors]
        with self.page.expect_console_message(lambda message: f"status of {status} " in message.text) as told:
            yield
        assert [*before, _in_words(told.value)] == self.errors, self.errors
        self.errors = before


def _in_words(message: ConsoleMessage) -> str:
    return f"{message.type}: {message.text} ({message.location['url']})"


@contextmanager
def tab(
    browser: Browser,
    link: str,
    *,
    dark: bool = False,
    size: tuple[int, int] = _WIDE,
    still: bool = True,
    zone: str = "UTC",
) -> Iterator[Tab]:
    """A tab of one's own; at its end nothing may have gone wrong in it."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        timezone_id=zone,
        reduced_motion="reduce" if still else "no-preference",
        permissions=["clipboard-read", "clipboard-write"],
    )
    try:
        opened = Tab(context, link)
        yield opened
        assert opened.errors == [], opened.errors
    finally:
        context.close()
