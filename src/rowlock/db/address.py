"""Which database and schema: from the constructor, else $ROWLOCK_URL, $DATABASE_URL and $ROWLOCK_SCHEMA."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rowlock.errors import InvalidOption, NotConfigured
from rowlock.model.names import check_schema
from rowlock.store.query import DEFAULT_SCHEMA

_SCHEME = re.compile(r"^(?P<scheme>[a-z][a-z0-9]*)(\+[a-z0-9_]+)?:", re.IGNORECASE)
# In a URL the last @ ends the password; in libpq's own form it may stand in quotes, and spaces around the =.
_SECRET = re.compile(r"(://[^:/@\s]*:)\S*@|((?:ssl)?password\s*=\s*)(?:'(?:[^'\\]|\\.)*'|\S+)")


@dataclass(frozen=True, slots=True)
class Address:
    """A libpq connection string, or the folder of an embedded server; `source` is where it was said."""

    source: str
    conninfo: str | None = None
    folder: Path | None = None

    def __str__(self) -> str:
        return f"embedded:{self.folder}" if self.folder else redacted(self.conninfo or "")


def find_address(
    url: str | None, embedded: str | Path | None, environment: Mapping[str, str] = os.environ, *, said: str = "url="
) -> Address:
    """The database to use, `url` being what was `said`; NotConfigured when none is named or it makes no sense."""
    if embedded is not None:
        return Address(said.replace("url", "embedded"), folder=Path(embedded))
    named = {
        said: url,
        "$ROWLOCK_URL": environment.get("ROWLOCK_URL"),
        "$DATABASE_URL": environment.get("DATABASE_URL"),
    }
    for source, value in named.items():
        if value:
            return _parsed(value, source)
    raise NotConfigured(
        "no database named; pass Rowlock(url=…), set $ROWLOCK_URL or $DATABASE_URL to postgresql://USER@HOST/NAME, "
        "or use embedded:FOLDER for a private server"
    )


@dataclass(frozen=True, slots=True)
class Schema:
    """The name of our schema; `source` is where it was said, or "default"."""

    source: str
    name: str


def find_schema(schema: str | None, environment: Mapping[str, str] = os.environ, *, said: str = "schema=") -> Schema:
    """The schema to use, `schema` being what was `said`; InvalidOption when it is no name for one."""
    if schema is not None:
        return Schema(said, check_schema(schema))
    named = environment.get("ROWLOCK_SCHEMA")
    if not named:
        return Schema("default", DEFAULT_SCHEMA)
    try:
        return Schema("$ROWLOCK_SCHEMA", check_schema(named))
    except InvalidOption as fault:
        raise InvalidOption(f"$ROWLOCK_SCHEMA: {fault}") from None


def redacted(conninfo: str) -> str:
    """A connection string that may be shown."""
    return _SECRET.sub(lambda match: f"{match[1]}***@" if match[1] else f"{match[2]}***", conninfo)


def _parsed(value: str, source: str) -> Address:
    match = _SCHEME.match(value)
    if match is None:
        if "=" in value:  # libpq's key=value form
            return Address(source, conninfo=value)
        raise NotConfigured(f"{source} {redacted(value)!r} is no database address; write postgresql://USER@HOST/NAME")
    scheme = match["scheme"].lower()
    if scheme == "embedded":
        folder = value.partition(":")[2]
        if not folder:
            raise NotConfigured(f"{source} names no folder; write embedded:FOLDER")
        return Address(source, folder=Path(folder))
    if scheme in {"postgresql", "postgres"}:
        # postgresql+psycopg:// and the like are SQLAlchemy's names for the same address.
        return Address(source, conninfo="postgresql:" + value[match.end() :])
    raise NotConfigured(
        f"{source} is a {scheme} address; Rowlock runs on PostgreSQL: write postgresql://USER@HOST/NAME"
    )
