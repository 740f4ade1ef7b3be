"""A program that uses Rowlock, for the command line to work on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rowlock.cli import main
from tests.cli.programs import Shop, Typed, shop_in
from tests.engine import Engine

Type = Callable[..., Typed]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A folder with a module `shop` that has an app."""
    with shop_in(tmp_path) as shop:
        yield shop


@pytest.fixture
def typed(shop: Shop, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Type]:
    """Runs `rowlock` in this process, which is ten times as fast: for the many commands that end before they begin."""
    for variable in ("ROWLOCK_URL", "DATABASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(shop.folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    modules = set(sys.modules)

    def run(*arguments: str) -> Typed:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        out, err = capfd.readouterr()
        return Typed(int(end.value.code or 0), out, err)

    yield run
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(shop.folder)):
            del sys.modules[name]


@pytest.fixture
def rowlock(typed: Type, url: str, monkeypatch: pytest.MonkeyPatch) -> Type:
    """`rowlock` on the test's database."""
    monkeypatch.setenv("ROWLOCK_URL", url)
    monkeypatch.setenv("COLUMNS", "140")
    return typed


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """A worker whose statements the test runs one at a time."""
    engine = Engine(url)
    yield engine
    engine.close()
