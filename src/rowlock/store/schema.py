"""The schema's migrations and partitions as values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from importlib import resources
from typing import NamedTuple

from rowlock.store.query import Conversation, Query, Row, first, in_schema, qualified

_COMPATIBLE = re.compile(r"^-- compatible: (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file. `compatible` is the oldest version of our code that can work on the schema it leaves."""

    version: int
    name: str
    compatible: int
    text: str

    def sql(self, schema: str) -> str:
        """The statements, for this schema."""
        return in_schema(self.text, schema)


class Partition(NamedTuple):
    """A part of history or events, holding what expires from `start` until before `end`; detached half, or wholly."""

    name: str
    start: date
    end: date
    detaching: bool | None


class Blocker(NamedTuple):
    """A session that has had locks on tables of ours for a while. Of another user's some things cannot be seen."""

    pid: int | None  # None: a prepared transaction
    name: str  # as its application calls itself
    user: str | None
    state: str | None
    tables: list[str]
    seconds: float | None  # how old its transaction is


@dataclass(frozen=True, slots=True)
class Partitioned:
    """A table that is kept by the day on which its rows expire, in parts of `step` days.

    `least` is how long some of its rows are kept, whatever anybody's settings say.
    """

    table: str
    step: int
    least: timedelta = timedelta(0)

    def first_days(self, *, start: date, end: date) -> list[date]:
        """The first day of every part between two days."""
        first_day = date.fromordinal(start.toordinal() // self.step * self.step)
        count = max(0, -(-(end - first_day).days // self.step))
        return [first_day + timedelta(days=self.step * n) for n in range(count)]


LONGEST_RETENTION = timedelta(days=30)
EVENTS_STAY = timedelta(days=30)  # as the default of events.expires_on says
_MARGIN = timedelta(days=7)

PARTITIONED = (Partitioned("history", 1), Partitioned("events", 7, least=EVENTS_STAY))


@cache
def migrations() -> tuple[Migration, ...]:
    """Every migration that ships with this version, oldest first."""
    folder = resources.files(__package__) / "migrations"
    found = []
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        number, _, name = file.name.removesuffix(".sql").partition("_")
        if number.isdigit():
            text = file.read_text(encoding="utf-8")
            declared = _COMPATIBLE.search(text)
            if declared is None:
                raise ValueError(
                    f"{file.name} does not say `-- compatible: N`, the oldest code that can use its schema"
                )
            found.append(Migration(int(number), name, int(declared[1]), text))
    return tuple(found)


def newest() -> int:
    """The schema version that this code is written for."""
    return migrations()[-1].version


def unfit(schema: str, *, version: int, compatible: int) -> str | None:
    """Why this code cannot work on a schema of this version, which needs code for `compatible`; None where it can."""
    ours = newest()
    if version < ours:
        missing = ", ".join(f"{one.version:04d}_{one.name}" for one in migrations() if one.version > version)
        return f"schema {schema!r} lacks migrations {missing}; run: rowlock migrate"
    if compatible > ours:
        return (
            f"schema {schema!r} is at version {version} and needs code for version {compatible} or later, "
            f"this Rowlock is for {ours}; upgrade it"
        )
    return None


def version() -> Query[tuple[int, int]]:
    """The schema's version and the oldest code it works with."""
    return Query("schema_version", {}, lambda row: (row[0], row[1]))


def look(schema: str) -> Query[tuple[bool, list[str]]]:
    """Whether the schema is there, and the schemas in which the session looks for names."""
    return Query("schema_look", {"table": qualified(schema, "jobs")}, lambda row: (row[0], row[1]))


def now() -> Query[datetime]:
    """The database's time."""
    return Query("schema_now", {}, lambda row: datetime.fromisoformat(row[0]))


def today() -> Query[date]:
    """The database's date."""
    return Query("schema_today", {}, lambda row: date.fromisoformat(row[0]))


def partitions(partitioned: Partitioned) -> Query[Partition]:
    """The partitions of a table."""

    def read(row: Row) -> Partition:
        start = date.fromisoformat(row[0][-8:])
        return Partition(row[0], start, start + timedelta(days=partitioned.step), row[1])

    return Query("partition_list", {"table": partitioned.table}, read)


def longest_retention() -> Query[int]:
    """The longest retention that any queue's settings ask for, in days."""
    return Query("retention_longest", {}, first)


def partition(table: str, *, first_day: date) -> Query[None]:
    """Make the part of a table that begins on a day."""
    return Query("partition_make", {"table": table, "first": str(first_day)}, first)


def drop(table: str, *, first_day: date) -> Query[None]:
    """Drop the part of a table that begins on a day, once everything in it has expired."""
    return Query("partition_drop", {"table": table, "first": str(first_day)}, first)


def clear_spare() -> Query[int]:
    """Remove the expired events of the spare part; returns how many there were."""
    return Query("event_clear", {}, first)


def blockers(schema: str, *, held_for: timedelta, most: int) -> Query[Blocker]:
    """Who has had locks on tables of the schema for so long."""
    seconds = str(held_for.total_seconds())
    return Query("lock_blockers", {"schema": schema, "seconds": seconds, "most": str(most)}, Blocker._make)


def owned() -> Query[bool]:
    """Whether this role owns the tables."""
    return Query("partition_owned", {}, first)


def partition_lock() -> Query[str]:
    """Wait until no other session is making partitions."""
    return Query("partition_lock", {}, first)


def make_partitions(*, longest: timedelta = LONGEST_RETENTION) -> Conversation[None]:
    """Make every missing partition from today until a week past the longest retention of its table."""
    asked = timedelta(days=max((yield longest_retention()), default=0))
    today_: date = (yield today())[0]
    for partitioned in PARTITIONED:
        ahead = max(longest, asked, partitioned.least) + _MARGIN
        yield from make_parts(partitioned, start=today_, end=today_ + ahead)


def make_parts(partitioned: Partitioned, *, start: date, end: date) -> Conversation[None]:
    """Make the missing parts of a table between two days; the lock is taken only where there is something to make."""
    wanted = partitioned.first_days(start=start, end=end)
    if {part.start for part in (yield partitions(partitioned))} >= set(wanted):
        return
    yield partition_lock()
    there = {part.start for part in (yield partitions(partitioned))}
    for first_day in wanted:
        if first_day not in there:
            yield partition(partitioned.table, first_day=first_day)
