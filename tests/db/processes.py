"""Other processes that have an embedded PostgreSQL, and what can be learnt of them from outside."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

HERE = Path(__file__).parent
SECONDS = 30


@dataclass
class Owner:
    """Another process that runs own_postgres.py, and what it tells about its server."""

    process: subprocess.Popen[str]

    def told(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        facts: dict[str, Any] = json.loads(self.process.stdout.readline())
        return facts

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(SECONDS)


StartOwner = Callable[..., Owner]


def one(url: str, query: str) -> Any:  # noqa: ANN401
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def ended(process: int) -> bool:
    """Wait for the process behind a pidfd to end."""
    poll = select.poll()
    poll.register(process, select.POLLIN)
    ready = bool(poll.poll(SECONDS * 1000))
    os.close(process)
    return ready


def postmaster_pid(folder: Path) -> int:
    return int((folder / "data" / "postmaster.pid").read_text().split()[0])


def guard_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
