"""Tables fit the terminal, whatever is in them."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.cells import cell_len
from rich.console import Console

from rowlock.cli.shared.tables import Column, console, table
from tests.cli.test_text import HOSTILE

ID = "0198c0de-0000-7000-8000-000000000001"
COLUMNS = [Column("id", least=36), Column("state", least=9), Column("task", least=11), Column("note", least=12, rank=1)]
LONG = "a_task_with_a_name_that_goes_on_and_on_" * 5


def drawn(rows: Sequence[Sequence[object]], width: int, columns: Sequence[Column] = COLUMNS) -> list[str]:
    """The lines of a table on a terminal of this width."""
    out = Console(width=width, file=io.StringIO(), record=True, color_system=None)
    out.print(table(columns, rows, width=width))
    return [line.rstrip() for line in out.export_text().rstrip("\n").split("\n")]


@pytest.mark.parametrize("width", [60, 80, 100, 240])
def test_a_table_is_no_wider_than_the_terminal_and_has_one_line_for_a_row(width: int) -> None:
    lines = drawn([(ID, "failed", LONG, "why " * 50), (ID, "ready", "t", "")], width)

    assert len(lines) == 3
    assert max(map(cell_len, lines)) <= width
    assert all(ID in line for line in lines[1:])
    assert "…" in lines[1]


def test_the_least_important_column_goes_first() -> None:
    wide = drawn([(ID, "failed", "shop.greet", "a note")], 100)
    narrow = drawn([(ID, "failed", "shop.greet", "a note")], 60)

    assert wide[0].split() == ["id", "state", "task", "note"]
    assert narrow[0].split() == ["id", "state", "task"]


def test_figures_are_whole_or_not_there() -> None:
    columns = [Column("queue", least=8), Column("due", right=True), Column("ended", rank=1, right=True)]

    lines = {width: drawn([("emails-to-partners", "1,234,567", "63,000/s")], width, columns) for width in (40, 30, 26)}

    assert lines[40][1].split() == ["emails-to-partners", "1,234,567", "63,000/s"]
    assert lines[30][1].split() == ["emails-t…", "1,234,567", "63,000/s"]
    assert lines[26][1].split() == ["emails-to-part…", "1,234,567"]


def test_a_column_that_says_nothing_takes_no_room() -> None:
    lines = drawn([(ID, "failed", "shop.greet", None)], 100)

    assert lines[0].split() == ["id", "state", "task"]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_no_cell_can_break_or_repaint_its_row(text: str) -> None:
    lines = drawn([(ID, text, text, text)], 240)

    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)


def test_wide_characters_are_counted_as_the_terminal_counts_them() -> None:
    lines = drawn([(ID, "failed", "日本語" * 20, "😀" * 30)], 80)

    assert max(map(cell_len, lines)) <= 80


def test_a_pipe_is_wide_unless_columns_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    pipe = console().width
    monkeypatch.setenv("COLUMNS", "60")
    told = console().width

    assert pipe > 200
    assert told == 60
