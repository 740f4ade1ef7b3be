"""Maps: ARCHITECTURE.md and CONTRIBUTING.md name what is there."""

from __future__ import annotations

import re

import pytest

from tests.house.reading import ROOT

PACKAGE = ROOT / "src" / "rowlock"
ROOMS = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}

_PATH = re.compile(r"\w/|\.(?:py|sql|md|html|css)$")
_NEW = re.compile(r"NAME|NOUN|noun")


def named() -> list[str]:
    """The modules, rooms and statements that the page names."""
    words = re.findall(r"`([\w./]+)`", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    return [word for word in words if (word.partition("/")[0] in ROOMS or word.endswith(".sql")) and "noun" not in word]


def is_there(name: str) -> bool:
    if name.endswith(".sql") and "/" not in name:
        return (PACKAGE / "store" / "sql" / name).exists()
    return any((path := root / name).exists() or path.with_suffix(".py").exists() for root in (PACKAGE, ROOT))


def test_every_module_and_statement_that_the_page_names_is_there() -> None:
    assert [name for name in named() if not is_there(name)] == []


def paths_of_recipes() -> list[str]:
    """What CONTRIBUTING.md says in code and looks like a path; files that the reader adds have names in capitals."""
    words = re.findall(r"`([\w./]+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    return [word for word in words if _PATH.search(word) and not _NEW.search(word)]


def test_every_path_of_a_recipe_is_there() -> None:
    paths = paths_of_recipes()

    assert "store/enqueue.py" in paths
    assert [path for path in paths if not is_there(path)] == []


def test_every_room_is_on_the_page() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")

    assert [room for room in sorted(ROOMS) if f"`{room}/`" not in text] == []


@pytest.mark.parametrize("name", ["worker/claim", "store/find/", "job_settle.sql"])
def test_the_rule_finds(name: str) -> None:
    assert is_there(name)


@pytest.mark.parametrize("name", ["worker/claims", "job_settled.sql"])
def test_the_rule_misses(name: str) -> None:
    assert not is_there(name)
