"""Glossary: it explains the classes that one room takes from another."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

from tests.house.reading import ROOT, package

GLOSSARY = (ROOT / "docs" / "concepts" / "glossary.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")


def classes() -> dict[str, ast.ClassDef]:
    """Every class at the top of a module, by its full name."""
    found: dict[str, ast.ClassDef] = {}
    for source in package():
        module = ".".join(("rowlock", *source.name.removesuffix(".py").split("/"))).removesuffix(".__init__")
        found |= {f"{module}.{node.name}": node for node in source.tree.body if isinstance(node, ast.ClassDef)}
    return found


def is_value(node: ast.ClassDef) -> bool:
    """A row or a frozen dataclass: between two neighbours it is explained where it lies."""
    bases = {ast.unparse(base) for base in node.bases}
    return "NamedTuple" in bases or any("frozen=True" in ast.unparse(one) for one in node.decorator_list)


def to_be_explained() -> set[str]:
    """What crosses a room: but for errors and public names, which the reference has, and values of two neighbours."""
    there = classes()
    users = defaultdict(set)
    for source in package():
        for name in source.imports():
            if name in there and name.split(".")[1] not in ("errors", source.room):
                users[name].add(source.room)
    public = set(re.findall(r"^### (\w+)$", REFERENCE, re.MULTILINE))
    crossing = {name for name, rooms in users.items() if len(rooms - {"__init__"}) > is_value(there[name])}
    return {name.rpartition(".")[2] for name in crossing} - public


def explained() -> set[str]:
    """The classes and aliases in the first column of the glossary."""
    rows = re.findall(r"^\| (`[^|]*) \|", GLOSSARY, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_every_class_that_crosses_a_room_is_in_the_glossary() -> None:
    assert sorted(to_be_explained() - explained()) == []


def test_every_name_of_the_glossary_is_there() -> None:
    there = {name.rpartition(".")[2] for name in classes()}
    aliases = {
        ast.unparse(node.targets[0]) for one in package() for node in one.tree.body if isinstance(node, ast.Assign)
    }

    assert sorted(explained() - there - aliases) == []


def test_the_rule_finds_the_classes_of_every_room() -> None:
    assert {"Database", "ClaimedJob", "Query", "StepStore", "RunningAttempt"} <= to_be_explained()
