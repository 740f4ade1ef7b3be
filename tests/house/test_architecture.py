"""ARCHITECTURE.md names what is there."""

from __future__ import annotations

import re

import pytest

from tests.house.reading import ROOT

PACKAGE = ROOT / "src" / "rowlock"
ROOMS = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}


def named() -> list[str]:
    """The modules, rooms and statements that the page names."""
    words = re.findall(r"`([\w./]+)`", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    return [word for word in words if (word.partition("/")[0] in ROOMS or word.endswith(".sql")) and "noun" not in word]


def is_there(name: str) -> bool:
    if name.endswith(".sql") and "/" not in name:
        return (PACKAGE / "store" / "sql" / name).exists()
    path = PACKAGE / name.rstrip("/")
    return path.is_dir() or path.with_suffix(".py").exists()


def test_every_module_and_statement_that_the_page_names_is_there() -> None:
    assert [name for name in named() if not is_there(name)] == []


def test_every_room_is_on_the_page() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")

    assert [room for room in sorted(ROOMS) if f"`{room}/`" not in text] == []


@pytest.mark.parametrize("name", ["worker/claim", "store/find/", "job_settle.sql"])
def test_the_rule_finds(name: str) -> None:
    assert is_there(name)


@pytest.mark.parametrize("name", ["worker/claims", "job_settled.sql"])
def test_the_rule_misses(name: str) -> None:
    assert not is_there(name)
