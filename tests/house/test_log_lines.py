"""The table of log lines in the guide: each line is one that the code can say."""

from __future__ import annotations

import ast
import re

from tests.house.reading import ROOT

# What stands in the table for what the code puts in: names, figures, and whatever follows.
FILLED = re.compile(r"\(ID\)|\b[A-Z]{2,}\b|\bN\b|\d[\d,.]*|…|: |\bthread\b")


def fixed(line: str) -> list[str]:
    """The parts of a line that are always the same."""
    parts = (part.strip(" :;,()%") for part in FILLED.split(line))
    return [part for part in parts if len(part) > 1]


def text(node: ast.AST) -> str:
    """What a text in the code always says."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text, node.values))
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_the_code_says_every_line_of_the_table() -> None:
    page = (ROOT / "docs/guides/logging.md").read_text()
    rows = re.findall(r"^\| (`.*?`) \| (?:DEBUG|INFO|WARNING|ERROR)", page, flags=re.MULTILINE)
    trees = [ast.parse(path.read_text()) for path in (ROOT / "src/rowlock").rglob("*.py")]
    said = "\n".join(text(node) for tree in trees for node in ast.walk(tree))

    assert len(rows) > 10
    parts = [part for row in rows for line in re.findall(r"`(.+?)`", row) for part in fixed(line)]
    assert [part for part in parts if part not in said] == []
