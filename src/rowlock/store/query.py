"""Query: a statement as a value, and how to read its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Generic, NamedTuple, TypeVar

from rowlock.store.columns import LISTS

T = TypeVar("T")
Row = tuple[Any, ...]
DEFAULT_SCHEMA = "rowlock"
# Characters of users' data in one statement, at the most, unless it is a single row. What is larger misses its
# deadline, and takes several times its size of the server's memory (500 MB of results: 33 s and 2.5 GB).
LARGEST_STATEMENT = 8 * 1024 * 1024


# `:name`, but not the second half of `::type`.
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)\b")
_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)
# `{copied}`: a list of columns.
_LIST = re.compile(r"\{([a-z_]+)\}")
_COPY = re.compile(r"\s*copy rowlock\.(?P<table>\w+) \((?P<columns>[\w, ]+)\) from stdin;\s*")
# PostgreSQL's timestamps end in the year 294276; a job further away than a century is a mistake or means "never".
_LONGEST = timedelta(days=36525)


@dataclass(frozen=True, slots=True)
class Query(Generic[T]):
    """One statement to run, named by its file, and how to read each of its rows.

    Every parameter is text: it fits every driver, and the statement's casts say what it means.
    """

    name: str
    params: Mapping[str, str | None]
    read: Callable[[Row], T]


@dataclass(frozen=True, slots=True)
class Explained(Query[T]):
    """A statement that is run to learn what it costs: PostgreSQL explains it in place of its rows. For psycopg only."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One COPY FROM STDIN, named by its file, and the blocks of text to send; they are made while PostgreSQL reads."""

    name: str
    blocks: Iterable[str]


# What is said to PostgreSQL in one go.
Statement = Query[Any] | Copy
# Several statements with a decision between them, written once for every kind of connection: a generator that yields
# queries, is sent their rows, and returns its result. What goes wrong with a query is raised where it was yielded.
Conversation = Generator[Statement, list[Any], T]


def alone(query: Query[T]) -> Conversation[list[T]]:
    """A conversation of one query: its rows."""
    return (yield query)


class Numbered(NamedTuple):
    """A statement whose parameters have numbers, and their names in that order."""

    text: str
    names: tuple[str, ...]


class Target(NamedTuple):
    """Where a COPY goes."""

    table: str
    columns: tuple[str, ...]


@cache
def statement(name: str, schema: str) -> str:
    """The text of `sql/NAME.sql` for psycopg: the schema's name in place, no comments, `:name` as a text parameter."""
    return _PARAMETER.sub(r"%(\1)s::pg_catalog.text", in_schema(_bare(name), schema).replace("%", "%%"))


@cache
def numbered(name: str, schema: str) -> Numbered:
    """The same for asyncpg, where a parameter is `$1`."""
    numbers: dict[str, int] = {}
    text = _PARAMETER.sub(
        lambda match: f"${numbers.setdefault(match[1], len(numbers) + 1)}::pg_catalog.text",
        in_schema(_bare(name), schema),
    )
    return Numbered(text, tuple(numbers))


@cache
def target(name: str) -> Target:
    """The table and the columns of a COPY, for asyncpg, which writes that statement itself."""
    found = _COPY.fullmatch(_bare(name))
    if found is None:
        raise ValueError(f"{name}.sql is not of the form `copy rowlock.TABLE (COLUMNS) from stdin;`")
    return Target(found["table"], tuple(found["columns"].split(", ")))


def _bare(name: str) -> str:
    text = (resources.files(__package__) / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    return _LIST.sub(lambda match: LISTS[match[1]], _COMMENT.sub("", text))


def in_schema(sql: str, schema: str) -> str:
    """Our SQL files write `rowlock.`; put the configured name there, which must be a validated identifier."""
    return sql if schema == DEFAULT_SCHEMA else re.sub(r"\browlock\.", qualified(schema, ""), sql)


def qualified(schema: str, name: str) -> str:
    """A name in the schema, as SQL and to_regclass read it; in quotes, for a schema may be named `user`."""
    return f'"{schema}".{name}'


def first(row: Row) -> Any:  # noqa: ANN401  whatever the column holds
    """Read a row of one column."""
    return row[0]


def array(values: Iterable[str | None]) -> str:
    """A PostgreSQL array as text: 0.2 µs for a short JSON text; psycopg takes 10 µs for each of a list."""
    return "{" + ",".join(["null" if value is None else _quoted(value) for value in values]) + "}"


def plain_array(values: Iterable[str]) -> str:
    """An array of texts that need no quoting: ids, numbers, names we made."""
    return "{" + ",".join(values) + "}"


def numbers(values: Iterable[int | None]) -> str:
    """An array of numbers, some of which may be missing."""
    return "{" + ",".join(["null" if value is None else str(value) for value in values]) + "}"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


@lru_cache(1024)
def interval(delay: timedelta) -> str:
    """A duration as PostgreSQL reads it, exact to the microsecond and at most a century."""
    delay = min(delay, _LONGEST)
    return f"{delay.days} days {delay.seconds}.{delay.microseconds:06d} seconds"


def later(now: datetime, delay: timedelta) -> str:
    """The moment so long after now, at most a century."""
    return instant(now + min(delay, _LONGEST))


def instant(moment: datetime) -> str:
    """An aware moment as PostgreSQL reads it."""
    return moment.astimezone(UTC).isoformat()
