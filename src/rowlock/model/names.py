"""Names: checks of names and options.

Each check returns the value it was given, or raises InvalidOption with a sentence. Values only ever travel as
parameters, so quotes, `%`, `;` and emoji are welcome. Refused are characters that PostgreSQL cannot store, that a
person cannot see, or that the command line uses itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from rowlock.errors import InvalidOption

MAX_NAME: Final = 200
MAX_KEY: Final = 500
MAX_TAG: Final = 100
MAX_SCHEDULE: Final = 90
MAX_TAGS: Final = 20
MAX_NOTE: Final = 200
MAX_ATTEMPTS: Final = 1_000_000_000
MAX_VERSION: Final = 1_000_000_000
MAX_DELAY: Final = timedelta(days=100 * 365)
PRIORITIES: Final = range(-4, 5)

_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,40}")
# A day short of what datetime holds: read back in a session's zone, an instant moves by up to 14 hours. And a century
# short: a job may expire so long after its run_at.
_FIRST: Final = datetime(1, 1, 2, tzinfo=UTC)
_LAST: Final = datetime(9899, 12, 30, tzinfo=UTC)


def check_task(name: str) -> str:
    """A task's name: printable, 1 to 200 bytes, without `@`."""
    _printable("task name", name, limit=MAX_NAME)
    if "@" in name:
        raise InvalidOption(
            f"task name {shown(name)} contains '@', which parts a workflow's name from its version; use '.' or '-'"
        )
    return name


def check_version(version: int) -> int:
    """The version of a workflow's code: from 1 on."""
    _whole("version", version)
    if not 1 <= version <= MAX_VERSION:
        raise InvalidOption(f"version={shown(version)} is out of range; the first is 1, and the next 2")
    return version


def versioned(task: str, version: int | None) -> str:
    """The name by which workers know the code of a job: NAME of a plain task, NAME@VERSION of a workflow."""
    return task if version is None else f"{task}@{version}"


def unversioned(name: str) -> tuple[str, int | None]:
    """A task's name as it is written by people, and the version in it, if it is NAME@VERSION."""
    task, _, version = name.rpartition("@")
    return (task, int(version)) if task and version.isascii() and version.isdigit() else (name, None)


def check_queue(name: str) -> str:
    """A queue's name: printable, 1 to 200 bytes, without `*`, `,` and `=`, which the command line uses."""
    _printable("queue name", name, limit=MAX_NAME)
    if set("*,=") & set(name):
        raise InvalidOption(
            f"queue name {shown(name)} contains '*', ',' or '='; the command line uses these, so use '-' or '.'"
        )
    return name


def check_schedule(name: str) -> str:
    """A schedule's name: printable, 1 to 90 bytes (its jobs carry it in a tag), without `*`, `,` and `=`."""
    _printable("schedule name", name, limit=MAX_SCHEDULE)
    if set("*,=") & set(name):
        raise InvalidOption(
            f"schedule name {shown(name)} contains '*', ',' or '='; the command line uses these, so use '-' or '.'"
        )
    return name


def check_signal(name: str) -> str:
    """A signal's name: printable, 1 to 200 bytes, without `/` and `#`, which no wait can have."""
    _printable("signal name", name, limit=MAX_NAME)
    if set("/#") & set(name):
        raise InvalidOption(
            f"signal name {shown(name)} contains '/' or '#', which stand beside the names of steps; use '.' or '-'"
        )
    return name


def check_key(key: str) -> str:
    """A key: any text of 1 to 500 bytes that PostgreSQL can store. Keys are often made of users' data."""
    return check_text("key", key, limit=MAX_KEY)


def check_text(what: str, text: str, *, limit: int) -> str:
    """Any text of 1 to `limit` bytes that PostgreSQL can store."""
    _text(what, text, limit=limit)
    if "\x00" in text:
        raise InvalidOption(f"{what} {shown(text)} contains NUL, which PostgreSQL cannot store; remove it")
    return text


def check_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """At most 20 tags, printable and of 1 to 100 bytes each."""
    if isinstance(tags, str):
        raise InvalidOption(f"tags={shown(tags)} is one str; write tags=[{shown(tags)}]")
    if not isinstance(tags, Iterable):
        raise InvalidOption(f"tags={shown(tags)} must be a list of str, not {type(tags).__name__}")
    checked = tuple(_printable("tag", tag, limit=MAX_TAG) for tag in tags)
    if len(checked) > MAX_TAGS:
        raise InvalidOption(f"{len(checked)} tags are given, and {MAX_TAGS} are allowed; keep the ones you filter by")
    return checked


def check_schema(name: str) -> str:
    """The schema's name: a plain lower-case SQL identifier, short enough to derive channel names from."""
    _text("schema", name, limit=41)
    if not _SCHEMA.fullmatch(name):
        raise InvalidOption(
            f"schema {shown(name)} must be 1 to 41 of a-z, 0-9 and _, and not begin with a digit; try schema='rowlock'"
        )
    if name.startswith("pg_"):
        raise InvalidOption(f"schema {shown(name)} begins with pg_, which PostgreSQL keeps; try schema='rowlock'")
    return name


def check_priority(priority: int) -> int:
    """A priority: -4 to 4, higher first."""
    _whole("priority", priority)
    if priority not in PRIORITIES:
        raise InvalidOption(f"priority={shown(priority)} is out of range; use -4 (last) to 4 (first), 0 is the default")
    return priority


def check_attempts(attempts: int) -> int:
    """How often a job may be tried: 1 to a thousand million."""
    _whole("attempts", attempts)
    if not 1 <= attempts <= MAX_ATTEMPTS:
        raise InvalidOption(f"attempts={shown(attempts)} is out of range; use 1 (never retried) to {MAX_ATTEMPTS:,}")
    return attempts


def check_delay(delay: timedelta) -> timedelta:
    """How long to wait: zero to a hundred years."""
    if not isinstance(delay, timedelta):
        raise InvalidOption(f"delay={shown(delay)} must be a timedelta; write timedelta(seconds=…)")
    if not timedelta(0) <= delay <= MAX_DELAY:
        raise InvalidOption(f"delay={shown(delay)} must be from zero to {MAX_DELAY.days:,} days")
    return delay


def check_run_at(run_at: datetime) -> datetime:
    """An instant: an aware datetime that every session can read back."""
    return check_moment("run_at", run_at, instead=", or use delay=")


def check_moment(what: str, moment: datetime, *, instead: str = "") -> datetime:
    """An aware datetime that every session can read back."""
    if not isinstance(moment, datetime):
        raise InvalidOption(f"{what}={shown(moment)} must be a datetime; write datetime.now(UTC) + timedelta(…)")
    if moment.utcoffset() is None:
        raise InvalidOption(f"{what}={shown(moment)} has no time zone; write datetime(…, tzinfo=UTC){instead}")
    if not _FIRST <= moment <= _LAST:
        raise InvalidOption(f"{what}={shown(moment)} is out of range; use an instant before {_LAST:%Y-%m-%d}")
    return moment


def check_share(share: object) -> float:
    """How much of a job is done: 0 to 1."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InvalidOption(f"share={shown(share)} must be a number from 0 to 1")
    return float(share)


def check_note(note: object) -> str | None:
    """A note on the current progress of a job: up to 200 printable characters."""
    if note is None:
        return None
    if not isinstance(note, str) or len(note) > MAX_NOTE or not note.isprintable():
        raise InvalidOption(f"note={shown(note)} must be a str of up to {MAX_NOTE} printable characters")
    return note


def _printable(what: str, name: str, *, limit: int) -> str:
    _text(what, name, limit=limit)
    if not name.isprintable():
        odd = next(character for character in name if not character.isprintable())
        raise InvalidOption(f"{what} {shown(name)} contains {odd!a}, which cannot be seen; use printable characters")
    if name != name.strip():
        raise InvalidOption(f"{what} {shown(name)} begins or ends with a space; remove it")
    return name


def _text(what: str, text: str, *, limit: int) -> None:
    if not isinstance(text, str):
        raise InvalidOption(f"{what} {shown(text)} must be a str, not {type(text).__name__}")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidOption(f"{what} {shown(text)} contains a lone surrogate; decode it properly first") from None
    if not 1 <= size <= limit:
        raise InvalidOption(f"{what} {shown(text)} takes {size} bytes of UTF-8; use 1 to {limit}")


def _whole(what: str, number: int) -> None:
    if type(number) is not int:
        raise InvalidOption(f"{what}={shown(number)} must be an int, not {type(number).__name__}")


def shown(value: object) -> str:
    """A value for a message: in ASCII, so that no terminal obeys it, and short."""
    try:
        text = ascii(value)
    except Exception:  # a hostile repr, or an int of more digits than may be printed
        return f"<{type(value).__name__}>"
    return text if len(text) <= 60 else f"{text[:40]}…{text[-10:]}"
