"""Tables: they fit the terminal; the least important columns go first.

Imports rich: import this file only where something is drawn, so that every other command starts without it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rowlock.cli.shared import text
from rowlock.cli.shared.ids import SHOWN

_GAP = 2
# From so many columns on a row has room for whole ids.
_WIDE = 110
# What a pipe gets unless COLUMNS says otherwise: nothing is cut off before this.
_PIPE = 240
_STATES = {
    "running": "cyan",
    "succeeded": "green",
    "failed": "red",
    "cancelled": "yellow",
    "waiting": "yellow",
    "parked": "yellow",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, its least useful width and its rank (the highest goes first); figures are aligned right."""

    title: str
    least: int = 6
    rank: int = 0
    right: bool = False


def console(*, stderr: bool = False) -> Console:
    """Where tables go: as wide as the terminal, without colour where there is none or NO_COLOR says so."""
    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not made.is_terminal and not os.environ.get("COLUMNS"):
        made.width = _PIPE
    return made


def id_width() -> int:
    """How much of an id a row has room for: where it is narrow the end, of which every command knows what is meant."""
    return SHOWN if console().width < _WIDE else 36


def print_table(
    columns: Sequence[Column], rows: Iterable[Sequence[object]], *, title: str | None = None, stderr: bool = False
) -> None:
    """Print a table; every cell is one line that no data can break."""
    out = console(stderr=stderr)
    if title is not None:
        out.print(Text(text.lines(title), style="bold"), soft_wrap=True)
    out.print(table(columns, rows, width=out.width))


def table(columns: Sequence[Column], rows: Iterable[Sequence[object]], *, width: int) -> Table:
    """The columns of these that have room."""
    cells = [["" if value is None else text.line(value) for value in row] for row in rows]
    widths = [max([cell_len(column.title), *(cell_len(row[n]) for row in cells)]) for n, column in enumerate(columns)]
    filled = [n for n, column in enumerate(columns) if not column.rank or any(row[n] for row in cells)]
    kept = _with_room(columns, widths, filled, width)
    drawn = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, show_edge=False, header_style="dim")
    for n, room in zip(kept, _shares(columns, widths, kept, width), strict=True):
        column = columns[n]
        drawn.add_column(
            Text(column.title),
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=room,
        )
    for row in cells:
        drawn.add_row(*(Text(row[n], style=_STATES.get(row[n], "")) for n in kept))
    return drawn


def print_facts(pairs: Mapping[str, object], *, title: str | None = None, stderr: bool = False) -> None:
    """Print names and values, one to a line, but for those without one; long values go on below themselves."""
    out = console(stderr=stderr)
    if title is not None:
        out.print(Text(text.lines(title), style="bold"), soft_wrap=True)
    shown = {name: text.lines(value) for name, value in pairs.items() if value not in (None, "")}
    drawn = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, show_edge=False, show_header=False)
    drawn.add_column(style="dim", no_wrap=True)
    drawn.add_column(overflow="fold")
    for name, value in shown.items():
        drawn.add_row(Text(name), Text(value, style=_STATES.get(value, "")))
    out.print(drawn)


def print_block(title: str, content: str) -> None:
    """Print a text of several lines under a title, as it is."""
    out = console()
    out.print(Text(f"\n{text.line(title)}", style="bold"), soft_wrap=True)
    out.print(Text(text.lines(content.rstrip())), soft_wrap=True)


def _with_room(columns: Sequence[Column], widths: Sequence[int], filled: Sequence[int], width: int) -> list[int]:
    """The columns that stay when the least important ones have gone, one after the other, until the rest fits."""
    kept = list(filled)
    while len(kept) > 1 and _needed(columns, widths, kept) > width:
        last = max(kept, key=lambda n: (columns[n].rank, n))
        kept.remove(last)
    return kept


def _needed(columns: Sequence[Column], widths: Sequence[int], kept: Sequence[int]) -> int:
    return sum(_least(columns[n], widths[n]) for n in kept) + _GAP * (len(kept) - 1)


def _least(column: Column, width: int) -> int:
    """What a column needs to be of use; its title is never cut, nor are figures: half of a number is another one."""
    return width if column.right else max(cell_len(column.title), min(width, column.least))


def _shares(columns: Sequence[Column], widths: Sequence[int], kept: Sequence[int], width: int) -> list[int]:
    """What each column gets: all that it wants, or its least and a share of what is left over, the first ones first."""
    spare = width - _needed(columns, widths, kept)
    shares = []
    for n in kept:
        least = _least(columns[n], widths[n])
        more = max(0, min(widths[n] - least, spare))
        spare -= more
        shares.append(max(1, min(least + more, width)))
    return shares
