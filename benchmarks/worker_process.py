"""A worker in a process of its own, and how a benchmark talks to it: lines of words in, lines of JSON out.

It says when it started; after `expect N`, when N more jobs are settled; after `last`, when the last one was; after
`journal`, when each began and was settled. It stops when its input ends, so it does not outlive the benchmark.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple, Self

from benchmarks.arena import Arena
from benchmarks.measure import Broken
from benchmarks.piped import Piped
from benchmarks.tasks import app, begun
from rowlock.model.row import ClaimedJob
from rowlock.worker.run import Runner

_DRAINED_WITHIN = 60.0


class Times(NamedTuple):
    """When a job's handler began, and when the answer to its settle had come; as `time.monotonic` counts."""

    begun: float
    settled: float


class WorkerProcess(Piped):
    """The benchmark's end. Its worker has connected and sent its first claim by the time `with` is entered."""

    def __init__(self, *, slots: int, expect: int = 0, url: str | None = None) -> None:
        environment = {} if url is None else {"ROWLOCK_URL": url}
        super().__init__("benchmarks.worker_process", str(slots), str(expect), environment=environment)
        self.started = 0.0

    def __enter__(self) -> Self:
        super().__enter__()
        self.started = float(self.hear())
        return self

    def expect(self, count: int) -> None:
        """Ask to be told when so many more jobs are settled."""
        self.say(f"expect {count}")

    def wait_settled(self) -> None:
        """Wait until as many are settled as were expected."""
        self.hear()

    def wait_drained(self, arena: Arena) -> float:
        """Wait until the expected jobs are settled and none is left; answers when the last one was settled."""
        self.wait_settled()
        # What was handed back counts as settled, and comes again: only the table knows.
        deadline = time.monotonic() + _DRAINED_WITHIN
        while not arena.drained():
            if time.monotonic() > deadline:
                raise Broken(f"jobs are left, {_DRAINED_WITHIN:.0f} s after the worker had seen them all")
            time.sleep(0.01)
        self.say("last")
        return float(self.hear())

    def journal(self) -> dict[str, Times]:
        """The times of every job of the task `stamp` that was settled since the last journal, by id."""
        self.say("journal")
        return {job_id: Times(*times) for job_id, times in json.loads(self.hear()).items()}


class _Watch:
    """The worker's end: what has been settled, and who wants to know."""

    def __init__(self, expect: int) -> None:
        self._batches: list[tuple[float, Sequence[ClaimedJob]]] = []
        self._last = 0.0
        self._open = self._expected = expect

    def settled(self, rows: Sequence[ClaimedJob]) -> None:
        """Called once per batch, when the answer to its settle has come: cheap, for this is what is being measured."""
        self._last = time.monotonic()
        self._batches.append((self._last, rows))
        if self._open > 0:
            self._open -= len(rows)
            if self._open <= 0:
                _tell(self._expected)

    def obey(self, words: str) -> None:
        """Do what the benchmark asks."""
        match words.split():
            case ["expect", count]:
                self._open = self._expected = int(count)
            case ["last"]:
                _tell(self._last)
            case ["journal"]:
                _tell({row.id: (begun.pop(row.id, 0.0), at) for at, rows in self._batches for row in rows})
                self._batches.clear()
            case _:
                raise ValueError(f"a benchmark said {words!r}")


def _tell(fact: object) -> None:
    print(json.dumps(fact), flush=True)


def _watch_settles(watch: _Watch) -> None:
    """Be called where a worker lets go of a batch: there is no nearer place to the commit."""
    let_go = Runner.settled

    def settled(runner: Runner, rows: Sequence[ClaimedJob]) -> None:
        watch.settled(rows)
        let_go(runner, rows)

    Runner.settled = settled  # type: ignore[method-assign, assignment]


async def _work(slots: int, expect: int) -> None:
    watch = _Watch(expect)
    _watch_settles(watch)
    words = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(words), sys.stdin)
    async with app.worker(slots=slots):
        _tell(time.monotonic())
        async for line in words:
            watch.obey(line.decode())


if __name__ == "__main__":
    asyncio.run(_work(int(sys.argv[1]), int(sys.argv[2])))
