"""Address: which database and schema, and who said so."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_attempts, conninfo_to_dict, make_conninfo

from rowlock.db.setting import Setting, check_span, parse_seconds
from rowlock.db.threads import in_own_thread
from rowlock.errors import InvalidOption, NotConfigured
from rowlock.model.names import check_schema, shown
from rowlock.model.redact import redact_address
from rowlock.store.query import DEFAULT_SCHEMA

_SCHEME = re.compile(r"^(?P<scheme>[a-z][a-z0-9]*)(\+[a-z0-9_]+)?:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Address:
    """A libpq connection string, or the folder of an embedded server; `source` is where it was said."""

    source: str
    conninfo: str | None = None
    folder: Path | None = None

    def __str__(self) -> str:
        return f"embedded:{self.folder}" if self.folder else redact_address(self.conninfo or "")


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


def _parsed(value: str, source: str) -> Address:
    match = _SCHEME.match(value)
    if match is None:
        if "=" in value:  # libpq's key=value form
            return Address(source, conninfo=value)
        raise NotConfigured(
            f"{source} {redact_address(value)!r} is not a database address; write postgresql://USER@HOST/NAME"
        )
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


def writable(conninfo: str) -> str:
    """The same address; of several hosts the one that can write, unless somebody has said which: a standby cannot."""
    try:
        said = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        return conninfo  # connecting will say what is wrong with it
    hosts = f"{said.get('host') or os.environ.get('PGHOST', '')},{said.get('hostaddr') or ''}".strip(",")
    if "," not in hosts or "target_session_attrs" in said or os.environ.get("PGTARGETSESSIONATTRS"):
        return conninfo
    return make_conninfo(conninfo, target_session_attrs="read-write")


# How it is reached


def _parse_yes_no(text: str) -> bool:
    match text.strip().lower():
        case "1" | "true" | "yes" | "on":
            return True
        case "0" | "false" | "no" | "off":
            return False
        case _:
            raise InvalidOption(f"{shown(text)} is neither yes nor no; give 1 or 0")


def _check_yes_no(value: bool) -> bool:  # noqa: FBT001  a value, not an option
    if not isinstance(value, bool):
        raise InvalidOption(f"{shown(value)} must be True, False or None, not {type(value).__name__}")
    return value


def _check_listen_url(value: str) -> str:
    if not isinstance(value, str):
        raise InvalidOption(f"{shown(value)} must be an address, not {type(value).__name__}")
    try:
        address = _parsed(value, "it")
    except NotConfigured as fault:
        raise InvalidOption(f"{redact_address(value)!r} cannot be listened on: {fault}") from None
    if address.conninfo is None:
        raise InvalidOption(f"{value!r} is an embedded server; no pooler stands before one")
    return address.conninfo


# Whether a pooler stands before the database that lends connections for one transaction; None: find out.
POOLER: Final[Setting[bool | None]] = Setting("pooler", "ROWLOCK_POOLER", None, _parse_yes_no, _check_yes_no)
# An address around the pooler, on which notifications come through.
LISTEN_URL: Final[Setting[str | None]] = Setting("listen_url", "ROWLOCK_LISTEN_URL", None, str, _check_listen_url)
# How long a caller waits for an answer of the database.
DEADLINE: Final = Setting(
    "deadline",
    "ROWLOCK_DEADLINE",
    timedelta(seconds=30),
    parse_seconds,
    partial(check_span, least=timedelta(milliseconds=100)),
)


async def with_host_addresses(conninfo: str) -> str:
    """The same address with `hostaddr` beside each host name; the names stay, for TLS and passwords belong to them.

    What has no names stays as it is: sockets, IP addresses, and services, whose file libpq alone reads.
    """
    params = conninfo_to_dict(conninfo)
    if params.get("service") or os.environ.get("PGSERVICE"):
        return conninfo
    hosts = str(params.get("host") or os.environ.get("PGHOST") or "").split(",")
    if not any(_is_name(host) for host in hosts):
        return conninfo
    return await in_own_thread(partial(_with_addresses, conninfo, params))


def _with_addresses(conninfo: str, params: dict[str, Any]) -> str:
    # psycopg makes one attempt for each address; for prefer-standby each of them twice, which it will do itself later.
    attempts = conninfo_attempts({**params, "target_session_attrs": "any"})
    each = {
        name: [str(attempt.get(name, os.environ.get(variable, ""))) for attempt in attempts]
        for name, variable in (("host", "PGHOST"), ("hostaddr", "PGHOSTADDR"), ("port", "PGPORT"))
    }
    return make_conninfo(conninfo, **{name: ",".join(values) for name, values in each.items() if any(values)})


def _is_name(host: str) -> bool:
    if not host or host.startswith(("/", "@")):
        return False
    try:
        ip_address(host)
    except ValueError:
        return True
    return False
