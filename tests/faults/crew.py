"""Real workers, each `rowlock worker` in a process of its own, to be killed, frozen, thawed and told to stop."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.faults.nursery import Nursery
from tests.faults.oracle import FOLDER_VARIABLE, Oracle
from tests.waiting import until

# Generous: two cores run all of this, and other tests beside it.
LIMIT = 60.0

_WORKS = re.compile(r"\(([0-9a-f-]{36})\) works on")


@dataclass
class Member:
    """One worker process."""

    pid: int
    log: Path
    nursery: Nursery
    oracle: Oracle
    is_frozen: bool = False
    _code: int | None = None

    @property
    def ended(self) -> int | None:
        """Its exit code when it has ended, negative for a signal."""
        if self._code is None:
            self._code = self.nursery.ended(self.pid)
        return self._code

    @property
    def is_alive(self) -> bool:
        return self.ended is None

    @property
    def gave_up(self) -> bool:
        """Whether it has ended with an error of its own."""
        return self.ended is not None and self.ended > 0

    @property
    def said(self) -> str:
        """What it has logged."""
        return self.log.read_text()

    @property
    def incarnations(self) -> list[str]:
        """The ids under which it has worked, the latest last."""
        return _WORKS.findall(self.said)

    def works(self) -> Member:
        """Wait until it works; one that is killed before that is for the test to judge, one that gives up is not."""
        self.works_or_ends()
        assert self.incarnations or not self.gave_up, f"worker {self.pid} gave up before it worked:\n{self.said}"
        return self

    def works_or_ends(self) -> Member:
        """Wait until it works, or has ended."""
        until(lambda: self.incarnations or not self.is_alive, what="a worker that works", limit=LIMIT)
        return self

    def kill(self) -> None:
        """SIGKILL: it cannot hand anything back. It is gone when this returns."""
        self.oracle.write("killing", worker=self.pid)
        self.nursery.signal(self.pid, signal.SIGKILL)

    def freeze(self) -> None:
        """SIGSTOP: it holds what it holds, and does not know that time passes."""
        self.oracle.write("freezing", worker=self.pid)
        self.nursery.signal(self.pid, signal.SIGSTOP)
        self.is_frozen = True

    def thaw(self) -> None:
        """SIGCONT."""
        self.oracle.write("thawing", worker=self.pid)
        self.nursery.signal(self.pid, signal.SIGCONT)
        self.is_frozen = False

    def terminate(self) -> None:
        """SIGTERM: stop in good order."""
        self.oracle.write("stopping", worker=self.pid)
        self.nursery.signal(self.pid, signal.SIGTERM)

    def wait(self, limit: float = LIMIT) -> int:
        """Wait for its end; answers its exit code."""
        until(lambda: not self.is_alive, what=f"the end of worker {self.pid}", limit=limit)
        assert self.ended is not None
        return self.ended


class Crew:
    """Workers on one database; what they are not told is as short as a test wants it."""

    def __init__(self, nursery: Nursery, *, url: str, oracle: Oracle, folder: Path, **options: object) -> None:
        self.members: list[Member] = []
        self._nursery = nursery
        self._url = url
        self._oracle = oracle
        self._folder = folder
        self._options = {"slots": 8, "lease": 3, "grace": 2, "app": "tests.faults.tasks", **options}

    def __iter__(self) -> Iterator[Member]:
        return iter(self.living())

    def start(
        self, count: int = 1, *, url: str | None = None, environment: Mapping[str, str] | None = None, **options: object
    ) -> list[Member]:
        """Start some more workers, with options of `rowlock worker` that are theirs alone."""
        typed = {"url": url or self._url, **self._options, **options}
        words = [word for name, value in typed.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        started = []
        for _ in range(count):
            log = self._folder / f"worker-{len(self.members) + 1}.log"
            log.touch()
            env = {FOLDER_VARIABLE: str(self._oracle.folder), **(environment or {})}
            pid = self._nursery.fork(["worker", *words], log=log, environment=env)
            self._oracle.write("started", worker=pid)
            started.append(Member(pid, log, self._nursery, self._oracle))
            self.members += started[-1:]
        return started

    def living(self) -> list[Member]:
        """Those that have not ended."""
        return [member for member in self.members if member.is_alive]

    def fallen(self) -> list[Member]:
        """Those that have ended by themselves: nobody killed them, nobody told them to stop."""
        killed = {line["worker"] for line in self._oracle.read("killing", "stopping")}
        return [member for member in self.members if member.pid not in killed and not member.is_alive]

    def stop(self) -> None:
        """Stop those that live, in good order; whoever does not is killed, and that is a failure."""
        living = self.living()
        for member in living:
            member.terminate()
            if member.is_frozen:
                member.thaw()
        for member in living:
            assert member.wait() == 0, f"worker {member.pid} ended with {member.ended}:\n{member.said}"

    def kill(self) -> None:
        """Kill those that live."""
        for member in self.living():
            member.kill()

    def logs(self) -> str:
        """What all of them said, for a test that fails."""
        return "\n".join(f"--- {member.log.name}, pid {member.pid}\n{member.said[-4000:]}" for member in self.members)
