"""What people and machines read: a progress bar while measuring, then a table, or a line of JSON for each case."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

from benchmarks.measure import Case, spread

_FILE_WIDTH = 120


class Bar:
    """A progress bar for one scenario. It is drawn between measurements and never during one."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._task: TaskID = progress.add_task(name, total=None, words="setting up")
        self._done = -1
        self._total = 0

    def begin(self, steps: int) -> None:
        """So many steps are to come."""
        self._total += steps
        self._progress.update(self._task, total=self._total)

    def step(self, words: str) -> None:
        """The next one begins."""
        self._done += 1
        self._progress.update(self._task, completed=self._done, words=words, refresh=True)

    def end(self) -> None:
        """The last one is over."""
        self._progress.update(self._task, completed=self._done + 1, words="done", refresh=True)


@contextmanager
def progress_bar(name: str) -> Iterator[Bar]:
    """A bar on standard error, where that is a terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[words]}"),
    )
    with Progress(
        *columns, console=console, auto_refresh=False, transient=True, disable=not console.is_terminal
    ) as bars:
        bar = Bar(bars, name)
        yield bar
        bar.end()


def print_json(cases: Sequence[Case], facts: Mapping[str, object]) -> None:
    """One object per case, each on its own line."""
    for case in cases:
        print(json.dumps({**case.facts(), **facts}, ensure_ascii=False), flush=True)


def print_table(name: str, cases: Sequence[Case], facts: Mapping[str, object]) -> None:
    """A row for each case, then what its limit is."""
    console = Console()
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    table = Table(
        title=f"{name}   ({', '.join(f'{key} {value}' for key, value in facts.items())})", title_justify="left"
    )
    table.add_column("case", no_wrap=True)
    for heading in ("Rowlock", "limit", "ratio", "spread"):
        table.add_column(heading, justify="right")
    table.add_column("unit")
    table.add_column("target")
    table.add_column("met")
    for case in cases:
        table.add_row(
            case.case,
            _figure(case.rowlock),
            _figure(case.limit),
            f"{case.ratio:.2f}",
            f"{spread(case.rowlock_rounds):.0%} / {spread(case.limit_rounds):.0%}",
            case.unit,
            "" if case.target is None else str(case.target),
            _verdict(case),
        )
    console.print(table)
    for case in cases:
        console.print(f"  [dim]limit of {case.case}: {case.limit_is}[/dim]", highlight=False)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _verdict(case: Case) -> str:
    match case.met:
        case None:
            return ""
        case True:
            return "[green]yes[/green]"
        case False:
            return "[red]no[/red]"
