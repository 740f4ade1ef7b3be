"""What the tests of the embedded PostgreSQL share."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rowlock.db.embedded.binaries import Binaries, find_binaries
from rowlock.db.embedded.server import EmbeddedPostgres
from tests.db.processes import HERE, Owner, StartOwner


@pytest.fixture
def owner() -> Iterator[StartOwner]:
    """Starts processes that have an embedded PostgreSQL, and ends them after the test."""
    with ExitStack() as after:

        def start(folder: Path, place: str = "main", *, under: Sequence[str] = (), **options: Any) -> Owner:  # noqa: ANN401
            command = [*(under or [sys.executable]), "-P", str(HERE / "own_postgres.py"), str(folder), place]
            process = subprocess.Popen(command, stdin=-1, stdout=-1, text=True, **options)
            started = Owner(process)
            # In the reverse order: let it end its server, then make sure of it, then close its pipes.
            after.enter_context(process)
            after.callback(process.kill)
            after.callback(started.end)
            return started

        yield start


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a server has run once, to be copied by tests that are not about initdb."""
    folder = tmp_path_factory.mktemp("pristine") / "pg"
    with EmbeddedPostgres(folder):
        pass
    return folder


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "pg"
    shutil.copytree(pristine, copy)
    return copy


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user can reach; pytest's own are closed."""
    folder = Path(tempfile.mkdtemp(prefix="rowlock-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def public_binaries(monkeypatch: pytest.MonkeyPatch) -> Binaries:
    """A server that every user may run."""
    found = find_binaries()
    if not open_to_all(found.postgres):
        packages = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        if not packages:
            pytest.skip(f"other users cannot reach {found.folder}, and no PostgreSQL is installed for the whole system")
        monkeypatch.setenv("ROWLOCK_PG_BIN", str(packages[-1]))
        found = find_binaries()
    return found


def open_to_all(program: Path) -> bool:
    return all(place.stat().st_mode & 0o001 for place in [program, *program.parents])
