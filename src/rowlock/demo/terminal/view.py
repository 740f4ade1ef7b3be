"""The demo's live view: a scene as tables for a terminal of 80 columns or more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.align import Align
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from rowlock.demo.watch import DemoEvent, DemoState, WorkerState

_BARS = "▁▂▃▄▅▆▇█"
_STYLES = {"killed": "bold red", "rescued": "bold green", "retry": "yellow", "failed": "red", "started": "cyan"}
_MAJOR = {"killed", "rescued", "started"}
_LEAST_HAPPENINGS, _LEAST_MINOR = 4, 2
# Every line of the view but the happenings.
_OTHER_LINES = 19
_STATES_WIDTH = 44


class View:
    """Draws a scene in whatever room there is."""

    def __init__(self, scene: DemoState, *, footer: str) -> None:
        self._scene = scene
        self._footer = footer

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The whole view, from top to bottom."""
        scene = self._scene
        height = options.height or console.size.height
        yield _title(scene)
        yield _panel(Align(Text(scene.story), height=2), "what is going on")
        yield _panel(_workers(scene), "workers")
        yield _numbers(scene, width=options.max_width)
        yield _panel(_happenings(scene, max(_LEAST_HAPPENINGS, height - _OTHER_LINES)), "what happened")
        yield Text(f" {self._footer}", style="dim", no_wrap=True, overflow="ellipsis")


def _panel(content: object, title: str) -> Panel:
    return Panel(content, title=title, title_align="left", box=box.ROUNDED, border_style="blue", padding=(0, 1))  # type: ignore[arg-type]


def _title(scene: DemoState) -> Table:
    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(ratio=1)
    table.add_column(justify="right")
    minutes, seconds = divmod(int(scene.at), 60)
    table.add_row(
        Text(" rowlock: jobs that survive kill -9, on nothing but PostgreSQL", style="bold"),
        f"{minutes:02d}:{seconds:02d} ",
    )
    return table


def _workers(scene: DemoState) -> Table:
    table = Table.grid(expand=True, padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, width=11)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for bench in scene.benches:
        table.add_row(*_worker(bench))
    return table


def _worker(bench: WorkerState) -> tuple[Text, Text, Text, Text, Text]:
    colour = "green" if bench.alive else "red"
    lease = "" if bench.lease is None else f"lease {bench.lease:.1f} s" if bench.lease > 0 else "lease over"
    held = Text("■" * min(bench.held, bench.slots), style=colour if bench.alive else "bold red")
    held.append("·" * max(0, bench.slots - bench.held), style="dim")
    return (
        Text(f"{'●' if bench.alive else '✗'} worker {bench.number}", style=f"bold {colour}"),
        held,
        Text(f"holds {bench.held:2}"),
        Text(lease, style="dim" if bench.alive else "bold red"),
        Text(bench.note, style="" if bench.alive else "red"),
    )


def _numbers(scene: DemoState, *, width: int) -> Table:
    table = Table.grid(expand=True)
    table.add_column(width=_STATES_WIDTH)
    table.add_column(ratio=1)
    room = width - _STATES_WIDTH - 4
    table.add_row(_panel(_states(scene), "jobs"), _panel(_totals(scene, room), "jobs ended per second"))
    return table


def _states(scene: DemoState) -> Table:
    table = Table.grid(expand=True, padding=(0, 1))
    for label, number in ((10, 7), (9, 9)):
        table.add_column(width=label)
        table.add_column(width=number, justify="right")
    states = scene.states
    lost = Text(f"{scene.lost:,}", style="bold green" if not scene.lost else "bold white on red")
    table.add_row("waiting", f"{states['waiting']:,}", Text("succeeded", style="green"), f"{states['succeeded']:,}")
    table.add_row("ready", f"{states['ready']:,}", Text("failed", style="red"), f"{states['failed']:,}")
    table.add_row(Text("  retrying", style="yellow"), f"{scene.delayed:,}", "", "")
    table.add_row("running", f"{states['running']:,}", Text("lost", style="bold"), lost)
    return table


def _totals(scene: DemoState, width: int) -> Table:
    table = Table.grid(expand=True)
    rates = scene.rates[-max(10, width - 6) :]
    now = sum(scene.rates[-3:]) / 3
    line = Text(_sparkline(rates), style="green")
    line.append(f" {now:.0f}/s", style="bold")
    table.add_row(line)
    table.add_row(f"{scene.enqueued:,} enqueued")
    table.add_row(f"{scene.retried:,} retries, {scene.rescued:,} rescues")
    table.add_row(f"{scene.killed:,} worker{'' if scene.killed == 1 else 's'} killed")
    return table


def _sparkline(rates: tuple[int, ...]) -> str:
    most = max(*rates, 1)
    return "".join(_BARS[min(len(_BARS) - 1, rate * len(_BARS) // (most + 1))] if rate else " " for rate in rates)


def _happenings(scene: DemoState, lines: int) -> Table:
    table = Table.grid(expand=True, padding=(0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    shown = _worth_showing(scene.happenings, lines)
    for happening in shown:
        table.add_row(clock(happening.at), Text(happening.text, style=_STYLES.get(happening.kind, "")))
    for _ in range(lines - len(shown)):
        table.add_row("", "")
    return table


def _worth_showing(happenings: Sequence[DemoEvent], lines: int) -> list[DemoEvent]:
    """The latest, but so that many retries do not push a kill and a rescue off the screen."""
    major = [happening for happening in happenings if happening.kind in _MAJOR][-(lines - _LEAST_MINOR) :]
    minor = [happening for happening in happenings if happening.kind not in _MAJOR][-(lines - len(major)) :]
    return sorted([*major, *minor], key=lambda happening: happening.at)


def clock(seconds: float) -> str:
    """A time since the beginning, as it is shown."""
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


_FOOTER = "Ctrl-C ends it. All numbers are the database's; lost: ids it does not know."
_TOLD_IN_LINES = {"started", "killed", "rescued"}


@contextmanager
def shown() -> Iterator[Callable[[DemoState], None]]:
    """A function that shows a scene."""
    console = Console()
    if not console.is_terminal:
        yield _lines()
        return
    with Live(console=console, screen=True, auto_refresh=False) as live:

        def draw(scene: DemoState) -> None:
            live.update(View(scene, footer=_FOOTER), refresh=True)

        yield draw


def _lines() -> Callable[[DemoState], None]:
    """Tell what happens, a line each, but for retries: there are many."""
    console = Console(soft_wrap=True, highlight=False, markup=False)
    told = 0.0

    def tell(scene: DemoState) -> None:
        nonlocal told
        for happening in scene.happenings:
            if happening.at > told:
                told = happening.at
                if happening.kind in _TOLD_IN_LINES:
                    console.print(f"{clock(happening.at)} {happening.text}")

    return tell
