"""What the tests of the fault suite share: an oracle, crews of workers, servers to crash, and chance from a seed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock.db.embedded.binaries import find_binaries
from tests.conftest import SERVERS, clear_leftovers, remove_behind_us
from tests.faults import recorder
from tests.faults.crew import Crew
from tests.faults.estate import estate  # noqa: F401  a fixture
from tests.faults.leaks import leak_guard  # noqa: F401  a fixture, for every test here
from tests.faults.nursery import Nursery
from tests.faults.oracle import Oracle
from tests.faults.proxy import Proxy
from tests.faults.scene import scene  # noqa: F401  a fixture
from tests.faults.seeds import Trial, begin
from tests.faults.servers import Servers, make_template
from tests.faults.stage import Stage, set_stage

MakeCrew = Callable[..., Crew]
MakeStage = Callable[..., Stage]


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Forks workers."""
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture
def oracle(tmp_path: Path) -> Iterator[Oracle]:
    """Outside every database."""
    folder = tmp_path / "oracle"
    folder.mkdir()
    oracle = Oracle(folder)
    yield oracle
    oracle.close()


@pytest.fixture
def make_crew(nursery: Nursery, oracle: Oracle, tmp_path: Path) -> Iterator[MakeCrew]:
    """Makes crews, `make_crew(url, lease=2, slots=4)`; what still lives after the test is killed."""
    crews: list[Crew] = []

    def make(url: str, **options: object) -> Crew:
        folder = tmp_path / f"crew-{len(crews) + 1}"
        folder.mkdir()
        crews.append(Crew(nursery, url=url, oracle=oracle, folder=folder, **options))
        return crews[-1]

    yield make
    for crew in crews:
        crew.kill()
        print(crew.logs())  # noqa: T201  pytest shows it when the test failed


@pytest.fixture
def trial(request: pytest.FixtureRequest) -> Trial:
    """Chance for this test, and a line in the summary."""
    return begin(request.node)


@pytest.fixture
def make_stage(make_crew: MakeCrew, oracle: Oracle, trial: Trial) -> Iterator[MakeStage]:
    """Makes a stage on the database at an address, `make_stage(url, lease=2)`: the options are the crew's."""
    with ExitStack() as after:
        yield lambda url, **options: after.enter_context(
            set_stage(url, crew=make_crew(url, **options), oracle=oracle, trial=trial)
        )


@pytest.fixture
def stage(url: str, make_stage: MakeStage) -> Stage:
    """A stage on the test's own database; its workers have a short lease."""
    return make_stage(url)


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    """A network between a worker and the test's own database, that goes wrong on demand."""
    with Proxy(url) as proxy:
        yield proxy


@pytest.fixture
def recorded(url: str) -> Iterator[psycopg.Connection[TupleRow]]:
    """A look into the test's own database, where the flight recorder runs."""
    with psycopg.connect(url, autocommit=True) as connection:
        recorder.install(connection)
        yield connection


@pytest.fixture(scope="session")
def cluster_folder(worker_id: str) -> Iterator[Path]:
    """Where servers that tests crash live; a short path, for their sockets' sake."""
    clear_leftovers()
    folder = SERVERS / f"rowlock-test-pg-{find_binaries().major}-{worker_id}-faults-{os.getpid()}"
    folder.mkdir(parents=True)
    folder.chmod(0o711)  # as root the servers may have to run as another user
    yield folder
    remove_behind_us(folder)


@pytest.fixture(scope="session")
def cluster_template(cluster_folder: Path) -> Path:
    """A data folder with our schema, to be copied."""
    make_template(cluster_folder / "template")
    return cluster_folder / "template"


@pytest.fixture
def servers(cluster_template: Path, cluster_folder: Path, request: pytest.FixtureRequest) -> Iterator[Servers]:
    """Servers of this test's own."""
    folder = cluster_folder / f"{abs(hash(request.node.nodeid)):x}"[:12]
    folder.mkdir()
    folder.chmod(0o711)
    servers = Servers(cluster_template, folder)
    yield servers
    servers.close()
    shutil.rmtree(folder, ignore_errors=True)
