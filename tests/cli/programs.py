"""`rowlock` as its users start it: a process, what it prints, and what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import until

SHOP = """
import asyncio
import logging
import threading
from datetime import timedelta

from rowlock import Retry, Rowlock

app = Rowlock()


@app.task
async def greet(name: str) -> str:
    return f"hello {name}"


@app.task
async def linger() -> None:
    await asyncio.Event().wait()


@app.task
def block() -> None:
    logging.getLogger("shop").warning("blocks its thread")
    threading.Event().wait()


@app.task(timeout=timedelta(milliseconds=50), retry=Retry.none())
def hang() -> None:
    threading.Event().wait()


@app.task
async def block_elsewhere() -> None:
    await asyncio.to_thread(block.function)


@app.task
async def say(text: str) -> None:
    logging.getLogger("shop").warning(text)
"""


class Program:
    """One run of `rowlock`; its lines are gathered as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.out: list[str] = []
        self.err: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(stream, lines), daemon=True)
            for stream, lines in ((process.stdout, self.out), (process.stderr, self.err))
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream: Iterator[str], lines: list[str]) -> None:
        lines.extend(line.rstrip("\n") for line in stream)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        return "\n".join(self.out)

    @property
    def is_one_sentence(self) -> bool:
        """Whether it ended with exit code 1 and one line on standard error."""
        return self.process.returncode == 1 and not self.out and len(self.err) == 1

    @property
    def errors(self) -> str:
        return "\n".join(self.err)

    def says(self, words: str, *, times: int = 1) -> str:
        """Wait until it has said this on standard error, so many times; answers the last such line."""

        def said() -> list[str]:
            lines = [line for line in list(self.err) if words in line]
            assert len(lines) >= times or self.process.poll() is None, f"ended without {words!r}:\n{self.errors}"
            return lines[times - 1 : times]

        return until(said, what=f"{words!r} on standard error")[0]

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self, limit: float = 60.0) -> int:
        """Wait for its end; answers the exit code, when everything that it said has been read."""
        code = self.process.wait(limit)
        for reader in self._readers:
            reader.join(limit)
        return code


class Shop:
    """A folder with a program in it, and `rowlock` to be started there."""

    def __init__(self, folder: Path, after: ExitStack) -> None:
        self.folder = folder
        self._after = after

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def start(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> Program:
        """Start `rowlock` with these arguments, in the folder."""
        clean = {name: value for name, value in os.environ.items() if name not in {"ROWLOCK_URL", "DATABASE_URL"}}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "rowlock", *arguments],
            cwd=self.folder,
            env={**clean, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._after.enter_context(process)
        self._after.callback(process.kill)
        return Program(process)

    def run(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> Program:
        """Start `rowlock`, and wait for its end."""
        program = self.start(*arguments, env=env)
        program.ended()
        return program


@dataclass(frozen=True)
class Typed:
    """What a command that ran in the test's own process printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def is_one_sentence(self) -> bool:
        return self.code == 1 and not self.out and self.err.count("\n") == 1


@contextmanager
def shop_in(folder: Path) -> Iterator[Shop]:
    """A shop whose processes are gone at the end."""
    with ExitStack() as after:
        shop = Shop(folder, after)
        shop.write("shop.py", SHOP)
        yield shop


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for has ended, too."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"
