"""Schema: its migrations and partitions as values."""

from __future__ import annotations

import re
from collections.abc import Iterable
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


DAY, WEEK = timedelta(days=1), timedelta(days=7)


class Partition(NamedTuple):
    """A part of history or events, holding what expires from `start` until before `end`; detached half, or wholly."""

    name: str
    start: date
    end: date
    detaching: bool | None


class Span(NamedTuple):
    """The days of a part that is to be made."""

    start: date
    days: int


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
    """A table that is kept by the day on which its rows expire, in parts of a day or a week."""

    table: str
    stays: timedelta | None = None  # how long its rows are kept; None: as long as ended jobs are

    def kept(self, longest: timedelta) -> timedelta:
        """How long its rows are kept, where ended jobs are kept for `longest`."""
        return longest if self.stays is None else self.stays

    def lacks(self, there: Iterable[Partition], *, start: date, end: date, longest: timedelta) -> list[Span]:
        """The parts to make, so that every day between two has one: by the week where rows are kept for long.

        Parts that are there stay as they are. Where one covers some days of a week, its other days are made singly.
        """
        covered = {day for part in there for day in _days(part.start, part.end)}
        by_week = self.stays is not None or longest > LONGEST_BY_DAY
        lacking = []
        day = start
        while day < end:
            week = date.fromordinal(day.toordinal() // 7 * 7)
            if by_week and covered.isdisjoint(_days(week, week + WEEK)):
                lacking.append(Span(week, 7))
                day = week + WEEK
                continue
            if day not in covered:
                lacking.append(Span(day, 1))
            day += DAY
        return lacking


def _days(start: date, end: date) -> list[date]:
    return [start + DAY * n for n in range((end - start).days)]


LONGEST_RETENTION = timedelta(days=30)
# Every statement that looks into history opens all its parts: 400 of them took 25 ms to plan, and 23 transactions
# together all the locks that a server has by default.
LONGEST_BY_DAY = timedelta(days=60)
EVENTS_STAY = timedelta(days=30)  # as the default of events.expires_on says
_MARGIN = WEEK

PARTITIONED = (Partitioned("history"), Partitioned("events", stays=EVENTS_STAY))


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


def lookup(schema: str) -> Query[tuple[bool, list[str]]]:
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
        name = row[0]
        start = date.fromisoformat(name.rpartition("_")[2].removesuffix("w"))
        is_week = partitioned.stays is not None or name.endswith("w")
        return Partition(name, start, start + (WEEK if is_week else DAY), row[1])

    return Query("partition_list", {"table": partitioned.table}, read)


def longest_retention() -> Query[int]:
    """The longest retention that any queue's settings ask for, in days."""
    return Query("retention_longest", {}, first)


def partition(table: str, span: Span) -> Query[None]:
    """Make the part of a table for these days."""
    return Query("partition_make", {"table": table, "first": str(span.start), "days": str(span.days)}, first)


def drop(table: str, span: Span) -> Query[None]:
    """Drop the part of a table for these days, once everything in it has expired."""
    return Query("partition_drop", {"table": table, "first": str(span.start), "days": str(span.days)}, first)


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
    longest = max(longest, asked)
    for partitioned in PARTITIONED:
        yield from make_parts(
            partitioned, start=today_, end=today_ + partitioned.kept(longest) + _MARGIN, longest=longest
        )


def make_parts(partitioned: Partitioned, *, start: date, end: date, longest: timedelta) -> Conversation[None]:
    """Make the missing parts of a table between two days; the lock is taken only where there is something to make."""
    there = yield partitions(partitioned)
    if not partitioned.lacks(there, start=start, end=end, longest=longest):
        return
    yield partition_lock()
    there = yield partitions(partitioned)
    for span in partitioned.lacks(there, start=start, end=end, longest=longest):
        yield partition(partitioned.table, span)
