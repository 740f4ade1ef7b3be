"""`--stress`: every processor is kept busy while the tests run, as on a laptop that does other things."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# Ends by itself when its parent is gone, for then nobody is left to end it.
_BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(1_000_000))"

_LOAD = pytest.StashKey[list["subprocess.Popen[bytes]"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--stress", action="store_true", help="keep every processor busy beside the tests")


def pytest_configure(config: pytest.Config) -> None:
    # The processes of pytest-xdist have the same options; the load is there once.
    if config.getoption("--stress") and not hasattr(config, "workerinput"):
        count = len(os.sched_getaffinity(0))
        config.stash[_LOAD] = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(count)]


def pytest_report_header(config: pytest.Config) -> str | None:
    load = config.stash.get(_LOAD, None)
    return f"stress: {len(load)} busy processes beside the tests" if load else None


def pytest_unconfigure(config: pytest.Config) -> None:
    for process in config.stash.get(_LOAD, []):
        process.kill()
        process.wait()
