"""A process that has imported everything and forks workers: one costs some milliseconds instead of half a second.

It reads orders as lines of JSON and answers each with a line. It is the only one that reaps its children, so a pid that
it knows is never somebody else's. They end with it, and it ends with its input.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import tests.faults.tasks  # noqa: F401  for the children
from rowlock.cli import main

_ROOT = Path(__file__).resolve().parents[2]
_PR_SET_PDEATHSIG = 1
# It does nothing that takes long.
_LIMIT = 120.0


class Nursery:
    """The side of the tests."""

    def __init__(self) -> None:
        # Its own session: Ctrl-C is for the tests, which then end it.
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], cwd=_ROOT, stdin=-1, stdout=-1, text=True, start_new_session=True
        )
        self._mutex = threading.Lock()

    def fork(self, arguments: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> int:
        """Start `rowlock ARGUMENTS`; answers its pid."""
        return int(self._order(do="fork", arguments=arguments, log=str(log), environment=dict(environment)))

    def signal(self, pid: int, number: int) -> None:
        """Send a signal, unless the process has ended."""
        self._order(do="signal", pid=pid, number=number)

    def ended(self, pid: int) -> int | None:
        """The exit code of a process that has ended; negative for a signal."""
        code = self._order(do="look", pid=pid)
        return None if code is None else int(code)

    def close(self) -> None:
        """End it, and every process that it started."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(_LIMIT)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _order(self, **order: object) -> Any:  # noqa: ANN401  what was asked for
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._mutex:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            answered, _, _ = select.select([self._process.stdout], [], [], _LIMIT)
            assert answered, f"the nursery has not answered {order['do']} within {_LIMIT} s"
            return json.loads(self._process.stdout.readline())


class _Parent:
    """The side of the nursery."""

    def __init__(self) -> None:
        self._children: dict[int, int | None] = {}

    def fork(self, *, arguments: Sequence[str], log: str, environment: Mapping[str, str]) -> int:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _live(parent, arguments, log, environment)
        self._children[pid] = None
        return pid

    def signal(self, *, pid: int, number: int) -> None:
        if self.look(pid=pid) is None:
            os.kill(pid, number)
            if number == signal.SIGKILL:
                self._reap(pid, 0)

    def look(self, *, pid: int) -> int | None:
        if self._children[pid] is None:
            self._reap(pid, os.WNOHANG)
        return self._children[pid]

    def _reap(self, pid: int, options: int) -> None:
        ended, status = os.waitpid(pid, options)
        if ended:
            self._children[pid] = os.waitstatus_to_exitcode(status)

    def end(self) -> None:
        for pid in self._children:
            self.signal(pid=pid, number=signal.SIGKILL)


def _live(parent: int, arguments: Sequence[str], log: str, environment: Mapping[str, str]) -> None:
    """In the child: be `rowlock ARGUMENTS`, and nothing that the parent was."""
    code: object = 1
    try:
        os.setpgid(0, 0)
        if sys.platform.startswith("linux"):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.environ.update(environment)
        main(list(arguments))
    except SystemExit as end:
        code = end.code
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def serve() -> None:
    """Do what is ordered until the input ends."""
    gc.collect()
    gc.freeze()  # else each child copies these pages when it first collects
    parent = _Parent()
    for line in sys.stdin:
        order = json.loads(line)
        answer = getattr(parent, order.pop("do"))(**order)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    parent.end()


if __name__ == "__main__":
    serve()
