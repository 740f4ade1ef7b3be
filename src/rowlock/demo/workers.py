"""Workers: real processes of `rowlock worker`, to be killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from rowlock.demo.tasks import QUEUE

WORKERS = 3
SLOTS = 8
# Short, so that one sees the jobs of a killed worker come back; the default is 30 s.
LEASE_SECONDS = 3
GRACE_SECONDS = 2
_STOP_SECONDS = 20.0


@dataclass(slots=True)
class WorkerProcess:
    """A worker by its number; each start gives it another process."""

    number: int
    process: subprocess.Popen[bytes]
    start_at: float | None = None  # when it is to be started again

    @property
    def name(self) -> str:
        return f"worker {self.number}"

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None


class WorkerProcesses:
    """The workers 1 to `size`."""

    def __init__(self, *, size: int, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        for number in range(1, size + 1):
            self.log_of(number).unlink(missing_ok=True)
        self.members = [WorkerProcess(number, self._start(number)) for number in range(1, size + 1)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __iter__(self) -> Iterator[WorkerProcess]:
        return iter(self.members)

    def log_of(self, number: int) -> Path:
        """Where a worker's log lines go."""
        return self._folder / f"worker-{number}.log"

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        options = {
            "--app": "rowlock.demo.app",
            "--url": self._url,
            "--queues": QUEUE,
            "--slots": SLOTS,
            "--lease": LEASE_SECONDS,
            "--grace": GRACE_SECONDS,
            "--parent": os.getpid(),
        }
        arguments = [str(word) for option in options.items() for word in option]
        with self.log_of(number).open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "rowlock", "worker", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,  # Ctrl-C in the terminal is for the demo, which then stops them in good order
            )

    def freeze(self, member: WorkerProcess) -> None:
        """Stop it where it is, so that what it holds cannot change while it is read."""
        member.process.send_signal(signal.SIGSTOP)

    def thaw(self, member: WorkerProcess) -> None:
        """Let it go on."""
        member.process.send_signal(signal.SIGCONT)

    def kill(self, member: WorkerProcess, *, start_after: float | None = None) -> None:
        """SIGKILL: it cannot hand anything back, say goodbye or clean up. It is started again after so many seconds."""
        member.process.kill()
        member.process.wait()
        member.start_at = None if start_after is None else time.monotonic() + start_after

    def start(self, member: WorkerProcess) -> None:
        """Start one that has ended."""
        member.process = self._start(member.number)
        member.start_at = None

    def ask_to_stop(self, member: WorkerProcess) -> None:
        """SIGTERM: it finishes or hands back what it holds, and goes."""
        member.process.terminate()

    def start_again(self) -> list[WorkerProcess]:
        """Start those that are due to start again, and return them."""
        due = [member for member in self.members if member.start_at is not None and time.monotonic() >= member.start_at]
        for member in due:
            self.start(member)
        return due

    def fallen(self) -> list[WorkerProcess]:
        """Those that have ended by themselves; they are started again a second later."""
        fallen = [member for member in self.members if member.start_at is None and not member.is_alive]
        for member in fallen:
            member.start_at = time.monotonic() + 1.0
        return fallen

    def stop(self) -> None:
        """Stop them all: they finish or hand back what they hold."""
        for member in self.members:
            if member.is_alive:
                member.process.terminate()
                self.thaw(member)  # in case it was frozen
        deadline = time.monotonic() + _STOP_SECONDS
        for member in self.members:
            try:
                member.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                member.process.kill()
                member.process.wait()
