"""A test that hangs ends its process, with the stack of every thread, so that the run goes on, ends and names it.

pytest's own timer (faulthandler_timeout in pyproject.toml) stops when a test has failed, before its fixtures are torn
down, and it does not run after the last one. Here it is wound up for these, too: until the process is gone.
"""

from __future__ import annotations

import faulthandler
import os

import pytest

_STDERR = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_STDERR] = os.dup(2)  # the real one: later, it is the file in which a test's words are caught


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    _wind_up(item.config)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    _wind_up(session.config)


def _wind_up(config: pytest.Config) -> None:
    limit = float(config.getini("faulthandler_timeout"))
    faulthandler.dump_traceback_later(limit, exit=True, file=config.stash[_STDERR])
