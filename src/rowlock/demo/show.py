"""Where scenes go: a live view in a terminal, plain lines anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live

from rowlock.demo.scene import Scene
from rowlock.demo.view import View, clock

_FOOTER = "Ctrl-C ends it. All numbers are the database's; lost: ids it does not know."
_TOLD_IN_LINES = {"started", "killed", "rescued"}


@contextmanager
def shown() -> Iterator[Callable[[Scene], None]]:
    """A function that shows a scene."""
    console = Console()
    if not console.is_terminal:
        yield _lines()
        return
    with Live(console=console, screen=True, auto_refresh=False) as live:

        def draw(scene: Scene) -> None:
            live.update(View(scene, footer=_FOOTER), refresh=True)

        yield draw


def _lines() -> Callable[[Scene], None]:
    """Tell what happens, a line each, but for retries: there are many."""
    console = Console(soft_wrap=True, highlight=False, markup=False)
    told = 0.0

    def tell(scene: Scene) -> None:
        nonlocal told
        for happening in scene.happenings:
            if happening.at > told:
                told = happening.at
                if happening.kind in _TOLD_IN_LINES:
                    console.print(f"{clock(happening.at)} {happening.text}")

    return tell
