"""Blueprint: the schema that migrations make, compared with the one in the database."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

from rowlock.store.doctor.queries import Described
from rowlock.store.query import in_schema

_TABLE = re.compile(
    r"^create (unlogged )?table rowlock\.(\w+) \(\n(.*?)\n\)(?: partition by (.*?))?(?: with \(.*?\))?;$",
    re.MULTILINE | re.DOTALL,
)
_INDEX = re.compile(r"^CREATE (?:UNIQUE )?INDEX (\w+) ON (?:ONLY )?rowlock\.(\w+) .*;$", re.MULTILINE)
_FUNCTION = re.compile(
    r"^CREATE OR REPLACE FUNCTION rowlock\.(\w+)\(.*?\n(?=\n(?:CREATE OR|-- also)|\Z)", re.MULTILINE | re.DOTALL
)
_CONSTRAINT = re.compile(r"constraint (\w+) (.*)")
_KEYS = ("PRIMARY KEY", "UNIQUE")

# Tests move the clock by replacing it; a check of its own finds whether it has been moved.
_REPLACEABLE = ("function", "now")


class Difference(NamedTuple):
    """One thing that is not as it should be: missing, changed, or not ours."""

    how: str
    what: str


@cache
def _sum_of_migrations() -> str:
    return (resources.files("rowlock.store") / "migrations" / "schema.sql").read_text(encoding="utf-8")


@cache
def blueprint() -> dict[tuple[str, str, str], str]:
    """Everything that should be in the schema, by kind, table and name, as PostgreSQL describes it."""
    return {(thing.kind, thing.home, thing.name): thing.said for thing in _things(_sum_of_migrations())}


@cache
def may_be_emptied() -> frozenset[str]:
    """The tables that are unlogged on purpose."""
    return frozenset(table[2] for table in _TABLE.finditer(_sum_of_migrations()) if table[1])


def _things(text: str) -> Iterator[Described]:
    for table in _TABLE.finditer(text):
        yield Described("table", table[2], table[2], table[4] or "", True)
        yield from _inside(table[2], table[3])
    for index in _INDEX.finditer(text):
        yield Described("index", index[2], index[1], index[0].removesuffix(";"), True)
    for function in _FUNCTION.finditer(text):
        yield Described("function", function[1], function[1], function[0].strip().removesuffix(";"), True)


def _inside(table: str, lines: str) -> Iterator[Described]:
    for line in lines.split("\n"):
        said = line.strip().removesuffix(",")
        if rule := _CONSTRAINT.match(said):
            yield Described("constraint", table, rule[1], said, True)
            if rule[2].startswith(_KEYS):
                yield Described("index", table, rule[1], "", True)  # its constraint says all of it
        else:
            yield Described("column", table, said.partition(" ")[0], said, True)


def differences(schema: str, found: Sequence[Described]) -> list[Difference]:
    """The differences between a schema and the blueprint."""
    wanted = blueprint()
    there = {(thing.kind, thing.home, thing.name): thing.said for thing in found}
    gone = {thing[2] for thing in wanted.keys() - there.keys() if thing[0] == "table"}
    missing = [thing for thing in wanted.keys() - there.keys() if thing[0] == "table" or thing[1] not in gone]
    changed = [
        thing
        for thing in wanted.keys() & there.keys()
        if wanted[thing]
        and thing[::2] != _REPLACEABLE
        and _plain(there[thing]) != _plain(in_schema(wanted[thing], schema))
    ]
    strange = [thing for thing in there.keys() - wanted.keys() if thing[1] in {one[1] for one in wanted}]
    return [
        Difference(how, _name(thing))
        for how, things in (("missing", missing), ("changed", changed), ("not ours", strange))
        for thing in sorted(things)
    ]


def index_statement(schema: str, one: Difference) -> str | None:
    """The statement that makes a missing index; None for anything else, or an index that comes with its table."""
    if one.how != "missing" or not one.what.startswith("index "):
        return None
    name = one.what.removeprefix("index ")
    said = next((said for (kind, _, known), said in blueprint().items() if (kind, known) == ("index", name)), "")
    return in_schema(said, schema) or None


def _name(thing: tuple[str, str, str]) -> str:
    kind, home, name = thing
    return f"{kind} {name}" if kind in {"table", "function", "index"} else f"{kind} {name} of {home}"


def _plain(said: str) -> str:
    """The same text whether the schema's name is written in quotes or not, and however lines end."""
    return " ".join(said.replace('"', "").split())
