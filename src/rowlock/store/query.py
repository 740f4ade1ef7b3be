"""A statement as a value: its text, its parameters, and how to read its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Generic, TypeVar

T = TypeVar("T")

Row = tuple[Any, ...]

DEFAULT_SCHEMA = "rowlock"

# `:name`, but not the second half of `::type`.
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)\b")
_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Query(Generic[T]):
    """One statement to run, named by its file, and how to read each of its rows.

    Every parameter is text: it fits every driver, and the statement's casts say what it means.
    """

    name: str
    params: Mapping[str, str | None]
    read: Callable[[Row], T]


@dataclass(frozen=True, slots=True)
class Copy:
    """One COPY FROM STDIN, named by its file, and the blocks of text to send; they are made while PostgreSQL reads."""

    name: str
    blocks: Iterable[str]


# Several statements with a decision between them, written once for every kind of connection: a generator that yields
# queries, is sent their rows, and returns its answer.
Conversation = Generator[Query[Any] | Copy, list[Any], T]


@cache
def statement(name: str, schema: str) -> str:
    """The text of `sql/NAME.sql` for psycopg: the schema's name in place, no comments, `:name` as a text parameter."""
    text = (resources.files(__package__) / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    return _PARAMETER.sub(r"%(\1)s::text", in_schema(_COMMENT.sub("", text), schema).replace("%", "%%"))


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


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
