"""Sessions whose statements go one at a time, in an order that somebody else chooses: every order, or a drawn one.

What a session does is a conversation, as everywhere: a generator that yields the shipped statements and is sent their
rows. One that waits for another session's lock is seen to (pg_blocking_pids) and is out of the choice until it is free.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import psycopg
from hypothesis import strategies as st
from psycopg.rows import TupleRow

from rowlock.db.session import Connection, connect, run
from rowlock.store.query import Query, Statement

SCHEMA = "rowlock"

# What one session does: it yields statements (or bare SQL), and returns what it knows at its end.
Part = Generator[Statement | str, list[Any], list[Any]]
# Which of these sessions is to send its next statement.
Choose = Callable[[Sequence[str]], str]

# A statement that is not done by then may be waiting for a lock. Shorter only costs looks, longer only time.
_GLANCE = 0.004
# The longest that a schedule may stand still: then something other than our locks holds it up.
_PATIENCE = 60.0
# What PostgreSQL has chosen once, and not again in so many orders in a row that brought nothing new, is not waited for.
_IN_VAIN = 100


# They take nothing that another session may want, and give nothing back.
_CONCERNS_NOBODY = {"transaction_begin", "savepoint_set", "savepoint_release"}


class Stuck(AssertionError):
    """Sessions that wait for each other, with nobody left to move: a deadlock."""


@dataclass(slots=True)
class Session:
    """One connection, with a thread that sends its statements."""

    connection: Connection
    thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def __post_init__(self) -> None:
        self.send("select").result()  # starts the thread, so that it is there before any test and not left by one

    @property
    def pid(self) -> int:
        return self.connection.info.backend_pid

    def send(self, said: Statement | str) -> Future[list[Any]]:
        return self.thread.submit(self._run, said)

    def _run(self, said: Statement | str) -> list[Any]:
        cursor = self.connection.cursor()
        if isinstance(said, str):
            cursor.execute(said.encode())
            return cursor.fetchall() if cursor.description else []
        return run(cursor, said, SCHEMA)

    def close(self) -> None:
        self.thread.shutdown()
        self.connection.close()


@dataclass(slots=True)
class Moving:
    """A part that is being played: the statement it waits to send, or the one that is on its way."""

    session: Session
    part: Part
    next: Statement | str | None = None
    sent: Future[list[Any]] | None = None
    knows: list[Any] = field(default_factory=list)

    def begin(self) -> None:
        self._resume(lambda: next(self.part))

    def hear(self) -> None:
        """The statement is done: its rows, or its error, go to where it was said."""
        assert self.sent is not None
        answer, self.sent = self.sent, None
        error = answer.exception()
        self._resume(lambda: self.part.send(answer.result()) if error is None else self.part.throw(error))

    def _resume(self, move: Callable[[], Statement | str]) -> None:
        try:
            self.next = move()
        except StopIteration as end:
            self.next, self.knows = None, end.value or []


@dataclass(frozen=True, slots=True)
class Played:
    """A schedule that was played: who sent what in which order, and what each knows at its end."""

    steps: tuple[tuple[str, str], ...]
    knows: Mapping[str, list[Any]]

    def __str__(self) -> str:
        return "\n".join(f"  {name:8} {said}" for name, said in self.steps)


class Machine:
    """Some sessions on one database, and one that watches their locks."""

    def __init__(self, url: str, names: Sequence[str]) -> None:
        self._sessions = {name: Session(connect(url, name=f"interleaving {name}")) for name in names}
        self._watch: psycopg.Connection[TupleRow] = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        self._pids = [session.pid for session in self._sessions.values()]

    def play(self, parts: Mapping[str, Part], choose: Choose) -> Played:
        """Play the parts to their ends; raises Stuck, and whatever a part raises, with the schedule in a note."""
        cast = {name: Moving(self._sessions[name], part) for name, part in parts.items()}
        steps: list[tuple[str, str]] = []
        try:
            for moving in cast.values():
                moving.begin()
            while able := [name for name, moving in cast.items() if moving.sent is None and moving.next is not None]:
                # What concerns nobody else has no place among the others' steps that would have to be chosen.
                alone = [name for name in able if _title(cast[name].next or "") in _CONCERNS_NOBODY]
                name = alone[0] if alone else choose(able)
                moving = cast[name]
                assert moving.next is not None
                steps.append((name, _title(moving.next)))
                moving.sent = moving.session.send(moving.next)
                self._let_settle(list(cast.values()))
            if any(moving.sent is not None for moving in cast.values()):
                raise Stuck("every session waits for another one")
        except BaseException as error:
            error.add_note("in this order:\n" + str(Played(tuple(steps), {})))
            self._undo(cast.values())
            raise
        return Played(tuple(steps), {name: moving.knows for name, moving in cast.items()})

    def _let_settle(self, cast: Sequence[Moving]) -> None:
        """Go on when every statement that was sent is done, or waits for a session that has to be moved first."""
        for _ in range(int(_PATIENCE / _GLANCE)):
            away = {moving.sent: moving for moving in cast if moving.sent is not None}
            done, _ = wait(away, timeout=_GLANCE, return_when=FIRST_COMPLETED)
            for sent in done:
                away.pop(sent).hear()
            if not away or self._all_wait([moving.session.pid for moving in away.values()]):
                return
        raise Stuck(f"a statement was neither done nor waiting for one of ours within {_PATIENCE} s")

    def _all_wait(self, pids: Sequence[int]) -> bool:
        row = self._watch.execute(
            "select bool_and(pg_blocking_pids(pid) && %s::integer[]) from unnest(%s::integer[]) as pid",
            [self._pids, list(pids)],
        ).fetchone()
        return bool(row and row[0])

    def _undo(self, cast: Iterable[Moving]) -> None:
        """Leave no transaction open and no statement on its way."""
        for moving in cast:
            moving.part.close()
            if moving.sent is not None:
                self._watch.execute("select pg_cancel_backend(%s)", [moving.session.pid])
                wait([moving.sent])
            moving.session.send("rollback").result()

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()
        self._watch.close()


def _title(said: Statement | str) -> str:
    return said if isinstance(said, str) else said.name


@dataclass(slots=True)
class Branch:
    """Where schedules part: what has followed, by who moved next."""

    after: dict[str, Branch] = field(default_factory=dict)
    whole: bool = False  # everything after this has been played


class EveryOrder:
    """Chooses each order once. PostgreSQL may wake waiting sessions in another order than last time: what is able to
    move is seen anew each time, and a branch that shows up late is played too. One that showed up once by a rare chance
    may never come again, and is given up in the end: else there would be none.
    """

    def __init__(self) -> None:
        self._root = Branch()
        self._path: list[Branch] = []
        self._is_new = False

    def __iter__(self) -> Iterator[Choose]:
        in_vain = 0
        while not self._root.whole and in_vain < _IN_VAIN:
            self._path, self._is_new = [self._root], False
            yield self._choose
            in_vain = 0 if self._is_new or not self._path[-1].whole else in_vain + 1
            self._path[-1].whole = True
            for branch in reversed(self._path[:-1]):
                branch.whole = all(after.whole for after in branch.after.values())

    def _choose(self, able: Sequence[str]) -> str:
        here = self._path[-1]
        here.whole = False
        self._is_new |= not here.after.keys() >= set(able)
        for name in able:
            here.after.setdefault(name, Branch())
        name = next((name for name in able if not here.after[name].whole), able[0])
        self._path.append(here.after[name])
        return name


# Who moves next, drawn before anybody moves: PostgreSQL may wake waiting sessions in another order than last time, and
# what is drawn must not depend on how many are able to move. Six, so that of two as of three each has the same chance.
MOVES = st.lists(st.integers(0, 5), min_size=60, max_size=60)


def drawn(moves: Sequence[int]) -> Choose:
    """Chooses as was drawn; from the beginning again, should the schedule be longer."""
    numbers = cycle(moves)
    return lambda able: able[next(numbers) % len(able)]


BEGIN: Query[None] = Query("transaction_begin", {}, lambda _row: None)
COMMIT: Query[None] = Query("transaction_commit", {}, lambda _row: None)
ROLLBACK: Query[None] = Query("transaction_undo", {}, lambda _row: None)


def held(part: Part) -> Part:
    """The same in a transaction: others' statements come between its own and its commit."""
    yield BEGIN
    knows = yield from part
    yield COMMIT
    return knows


def undone(part: Part) -> Part:
    """The same in a transaction that is rolled back."""
    yield BEGIN
    yield from part
    yield ROLLBACK
    return []
