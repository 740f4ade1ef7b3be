"""The leak guard itself: it sees what a test leaves behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from pathlib import Path

import pytest

from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.db.session import connect
from tests.faults.leaks import Held, noise, tasks_at_end
from tests.waiting import until

asyncio_cancels = asyncio.runners._cancel_all_tasks  # type: ignore[attr-defined]


def test_a_connection_that_is_left_open_is_seen(server: EmbeddedPostgres, url: str) -> None:
    before = Held.now(server)

    with connect(url, name="rowlock left behind"):
        [file, connection] = sorted(Held.now(server).beyond(before), reverse=True)

    assert "socket" in file
    assert "rowlock left behind" in connection
    until(lambda: Held.now(server).beyond(before) == [])


def test_a_thread_a_file_and_a_child_that_are_left_are_seen(tmp_path: Path) -> None:
    before, stop = Held.now(None), threading.Event()
    thread = threading.Thread(target=stop.wait, name="left behind")

    thread.start()
    file = os.open(tmp_path / "left", os.O_CREAT)
    child = subprocess.Popen(["sleep", "600"])
    found = Held.now(None).beyond(before)
    child.kill()
    child.wait()
    os.close(file)
    stop.set()
    thread.join()

    assert [line for line in found if "thread left behind" in line]
    assert [line for line in found if str(tmp_path / "left") in line]
    assert [line for line in found if f"child process {child.pid}: sleep 600" in line]
    assert Held.now(None).beyond(before) == []


def test_a_task_that_is_left_to_the_end_of_its_loop_is_seen() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.runners, "_cancel_all_tasks", asyncio_cancels)  # not this test's own guard
        left = tasks_at_end(patch)

        asyncio.run(_leave_a_task())

    assert len(left) == 1
    assert "left behind" in left[0]


async def _leave_a_task() -> None:
    _leave_a_task.__dict__["kept"] = asyncio.create_task(asyncio.Event().wait(), name="left behind")


def test_words_about_something_lost_are_heard_in_a_log() -> None:
    log = "all is well\nTask exception was never retrieved\ncoroutine 'x' was never awaited\nall is well"

    assert len(noise(log)) == 2
