"""The schema's migrations and partitions as values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from importlib import resources
from typing import NamedTuple

from rowlock.store.query import Query, Row, first, in_schema

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
    """A part of history or events, holding what expires before `end`; detached at once, half, or not at all."""

    name: str
    end: date
    detaching: bool | None


@dataclass(frozen=True, slots=True)
class Partitioned:
    """A table that is kept by the day on which its rows expire, in parts of `step` days."""

    table: str
    step: int

    def parts(self, *, start: date, end: date) -> list[tuple[str, date, date]]:
        """Name and bounds of every part between two days."""
        first_day = date.fromordinal(start.toordinal() // self.step * self.step)
        count = max(0, -(-(end - first_day).days // self.step))
        days = [first_day + timedelta(days=self.step * n) for n in range(count)]
        return [(f"{self.table}_{day:%Y%m%d}", day, day + timedelta(days=self.step)) for day in days]


PARTITIONED = (Partitioned("history", 1), Partitioned("events", 7))


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


def version() -> Query[tuple[int, int]]:
    """The schema's version and the oldest code it works with."""
    return Query("schema_version", {}, lambda row: (row[0], row[1]))


def today() -> Query[date]:
    """The database's date."""
    return Query("schema_today", {}, lambda row: date.fromisoformat(row[0]))


def partitions(partitioned: Partitioned) -> Query[Partition]:
    """The partitions of a table."""

    def read(row: Row) -> Partition:
        start = date.fromisoformat(row[0][-8:])
        return Partition(row[0], start + timedelta(days=partitioned.step), row[1])

    return Query("partition_list", {"table": partitioned.table}, read)


def longest_retention() -> Query[int]:
    """The longest retention that any queue's settings ask for, in days."""
    return Query("retention_longest", {}, first)
