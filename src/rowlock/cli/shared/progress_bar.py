"""Progress bars: on standard error, on a terminal only.

Imports rich's live display, which tables do without: import this file only where a bar is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from rowlock.cli.shared.tables import console

Bar = Callable[[str, int, int | None], None]


@contextmanager
def progress_bars() -> Iterator[Bar]:
    """A function of what is done, how far it is, and of how much (None: nobody knows); a bar for each thing."""
    out = console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as progress:
        shown: dict[str, TaskID] = {}

        def bar(what: str, done: int, total: int | None) -> None:
            if what not in shown:
                shown[what] = progress.add_task(what, total=total)
            progress.update(shown[what], completed=done, total=total)

        yield bar
