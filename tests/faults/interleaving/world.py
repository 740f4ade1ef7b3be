"""One database on which a schedule after the other is played, each from an empty start and to its judged end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from rowlock.db.session import Connection, connect, run
from rowlock.model.row import ClaimedJob, NewJob
from tests.faults.interleaving import acts, recorder
from tests.faults.interleaving.acts import Fact, Parts
from tests.faults.interleaving.machine import SCHEMA, Choose, EveryOrder, Machine, Part, Played
from tests.faults.interleaving.verdict import judge

NAMES = ("a", "b", "c")
QUEUES = ("default", "other")

# Sets the scene, and gives each session its part.
Scene = Callable[["World"], Parts]


class World:
    """The scene, and all that is known on it."""

    def __init__(self, url: str) -> None:
        self.facts: list[Fact] = []
        self._connection: Connection = connect(url, name="interleaving scene")
        self._machine = Machine(url, NAMES)
        recorder.install(self._connection)

    # Setting the scene

    def do(self, part: Part) -> list[Fact]:
        """Have a part played alone, before the others begin or after they have ended."""
        facts = self._alone(part)
        self.facts += facts
        return facts

    def _alone(self, part: Part) -> list[Fact]:
        rows: list[Any] | None = None
        try:
            while True:
                said = next(part) if rows is None else part.send(rows)
                cursor = self._connection.cursor()
                if isinstance(said, str):
                    cursor.execute(said.encode())
                    rows = cursor.fetchall() if cursor.description else []
                else:
                    rows = run(cursor, said, SCHEMA)
        except StopIteration as end:
            return end.value or []

    def worker(self) -> str:
        """A worker with a lease that lasts."""
        worker = str(uuid4())
        run(self._connection.cursor(), acts.register(worker), SCHEMA)
        return worker

    def enqueued(self, count: int = 1, *, key: str | None = None) -> list[NewJob]:
        """Jobs that are there."""
        made = acts.new(count, key=key)
        self.do(acts.enqueue(made))
        return made

    def running(self, worker: str, count: int = 1, *, key: str | None = None) -> list[ClaimedJob]:
        """Jobs that a worker has claimed."""
        self.enqueued(count, key=key)
        return sorted(acts.claimed(self.do(acts.claim(worker, count))))

    # Playing

    def play(self, scene: Scene, choose: Choose) -> Played:
        """One schedule, from an empty database to one that is drained."""
        recorder.clear(self._connection)
        self.facts = []
        parts = scene(self)
        played = self._machine.play(parts, choose)
        try:
            for name in played.knows:
                self.facts += played.knows[name]
            judge(self._connection, self.facts)
            self._drain()
            judge(self._connection, self.facts)
            assert self.count("rowlock.jobs") == 0, "I19: it does not drain"
        except AssertionError as error:
            error.add_note("in this order:\n" + str(played))
            raise
        return played

    def every_order(self, scene: Scene) -> list[Played]:
        """Every order in which the parts' statements can go."""
        return [self.play(scene, choose) for choose in EveryOrder()]

    def _drain(self) -> None:
        """All workers die; a new one rescues and ends what is left, whatever floors others had."""
        self._connection.execute("delete from rowlock.pauses; delete from rowlock.workers", prepare=False)
        heir = self.worker()
        for _ in range(acts.MOST_CRASHES):
            self.do(acts.rescue(lost=True))
            self._connection.execute(acts.TAKE_SUSPECTS, prepare=False)
            if not (rows := acts.claimed(self.do(acts.claim(heir, 100, queues=QUEUES)))):
                return
            self.do(acts.settle(rows))

    def ran(self) -> list[str]:
        """The arguments that jobs were last claimed with, in the order in which these were made."""
        claimed = {row.id: row.args for row in acts.claimed(self.facts)}
        return [claimed[job] for job in sorted(claimed)]

    def count(self, table: str) -> int:
        row = self._connection.execute(f"select count(*) from {table}".encode()).fetchone()
        assert row is not None
        return int(row[0])

    def close(self) -> None:
        self._machine.close()
        self._connection.close()


def kinds(facts: Sequence[Fact]) -> list[str]:
    """What happened, in short."""
    return [fact.kind for fact in facts]
