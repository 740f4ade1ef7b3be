"""The leak guard: after every test of this folder all is as it was before.

Connections, threads, tasks, files and sockets, child processes; and nobody's log speaks of an exception that was lost.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from rowlock.db.embedded.server import EmbeddedPostgres
from tests.waiting import until

# What Python says when something that failed, or was never run, went unnoticed; and a worker, of a fault of its own.
NOISE = (
    "a loop of worker",
    "Exception in callback",
    "exception was never retrieved",
    "was never awaited",
    "was destroyed but it is pending",
    "Exception ignored in",
    "Unclosed",
)

_OURS = "select pid, application_name from pg_stat_activity where application_name like 'rowlock%'"


def noise(text: str) -> list[str]:
    """The lines of a log that speak of something lost."""
    return [line for line in text.splitlines() if any(words in line for words in NOISE)]


@dataclass
class Held:
    """What this process, and the test's server, hold at a moment."""

    threads: set[threading.Thread]
    files: set[tuple[str, str]]
    children: set[int]
    connections: set[tuple[int, str]]

    @classmethod
    def now(cls, server: EmbeddedPostgres | None) -> Held:
        threads = {thread for thread in threading.enumerate() if thread.is_alive()}
        return cls(threads, _files(), _children(), _connections(server))

    def beyond(self, before: Held) -> list[str]:
        """What is held now and was not before."""
        return [
            *(f"thread {thread.name}" for thread in self.threads - before.threads),
            *(f"open file {number}: {what}" for number, what in self.files - before.files),
            *(f"child process {pid}: {_command(pid)}" for pid in self.children - before.children),
            *(f"connection {pid} of {name!r}" for pid, name in self.connections - before.connections),
        ]


@dataclass
class _Heard(logging.Handler):
    """What asyncio complains of in this process."""

    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(logging.ERROR)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    __hash__ = logging.Handler.__hash__


@pytest.fixture(autouse=True)
def leak_guard(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that leaves something behind."""
    server = request.getfixturevalue("server") if "server" in request.fixturenames else None
    folder = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    heard, left = _Heard(), tasks_at_end(monkeypatch)
    logging.getLogger("asyncio").addHandler(heard)
    before = Held.now(server)
    yield
    try:
        leaks = _wait_for_less(lambda: Held.now(server).beyond(before))
        logs = [path.read_text(errors="replace") for path in folder.rglob("*.log")] if folder else []
        assert not leaks, f"left behind: {leaks}"
        assert not left, f"tasks that were left to the end of their loop: {left}"
        assert noise("\n".join([*heard.lines, *logs])) == []
    finally:
        logging.getLogger("asyncio").removeHandler(heard)


def _wait_for_less(leaks: Callable[[], list[str]]) -> list[str]:
    """What is still held when there was time enough to let go of it."""
    gc.collect()
    with suppress(AssertionError):  # then the caller says what it is
        until(lambda: not leaks(), limit=10)
    return leaks()


def tasks_at_end(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tasks that asyncio.run will find, and cancel without a word, at the end of a loop."""
    left: list[str] = []
    cancel_all = asyncio.runners._cancel_all_tasks  # type: ignore[attr-defined]

    def cancel_all_and_tell(loop: asyncio.AbstractEventLoop) -> None:
        left.extend(repr(task) for task in asyncio.all_tasks(loop))
        cancel_all(loop)

    monkeypatch.setattr(asyncio.runners, "_cancel_all_tasks", cancel_all_and_tell)
    return left


def _files() -> set[tuple[str, str]]:
    found = set[tuple[str, str]]()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # such as that of the listing itself
            found.add((entry.name, str(entry.readlink())))
    return {(number, what) for number, what in found if not what.startswith(f"/proc/{os.getpid()}/fd")}


def _children() -> set[int]:
    children = set[int]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            _, _, after_name = stat.read_text().rpartition(")")
            if int(after_name.split()[1]) == os.getpid():
                children.add(int(stat.parent.name))
    return children


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return "gone by now"


def _connections(server: EmbeddedPostgres | None) -> set[tuple[int, str]]:
    if server is None:
        return set()
    with psycopg.connect(server.url, autocommit=True, application_name="leak guard") as connection:
        return {(int(pid), str(name)) for pid, name in connection.execute(_OURS).fetchall()}
