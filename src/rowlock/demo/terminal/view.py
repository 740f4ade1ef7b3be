"""View: the demo's state as tables in a terminal, or as plain lines."""

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
_FOOTER = "Ctrl-C ends it. All numbers are the database's; lost: ids it does not know."
_TOLD_IN_LINES = {"started", "killed", "rescued"}


@contextmanager
def shown() -> Iterator[Callable[[DemoState], None]]:
    """A function that shows the demo's state: a live view in a terminal, plain lines anywhere else."""
    console = Console()
    if not console.is_terminal:
        yield _lines()
        return
    with Live(console=console, screen=True, auto_refresh=False) as live:

        def update(state: DemoState) -> None:
            live.update(View(state, footer=_FOOTER), refresh=True)

        yield update


def _lines() -> Callable[[DemoState], None]:
    """Print a line for each event but the retries: there are many."""
    console = Console(soft_wrap=True, highlight=False, markup=False)
    told = 0.0

    def tell(state: DemoState) -> None:
        nonlocal told
        for happening in state.happenings:
            if happening.at > told:
                told = happening.at
                if happening.kind in _TOLD_IN_LINES:
                    console.print(f"{clock(happening.at)} {happening.text}")

    return tell


class View:
    """Draws the demo's state in the room there is, from 80 columns on."""

    def __init__(self, state: DemoState, *, footer: str) -> None:
        self._state = state
        self._footer = footer

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The whole view, from top to bottom."""
        state = self._state
        height = options.height or console.size.height
        yield _title(state)
        yield _panel(Align(Text(state.story), height=2), "what is going on")
        yield _panel(_workers(state), "workers")
        yield _numbers(state, width=options.max_width)
        yield _panel(_happenings(state, max(_LEAST_HAPPENINGS, height - _OTHER_LINES)), "what happened")
        yield Text(f" {self._footer}", style="dim", no_wrap=True, overflow="ellipsis")


def _panel(content: object, title: str) -> Panel:
    return Panel(content, title=title, title_align="left", box=box.ROUNDED, border_style="blue", padding=(0, 1))  # type: ignore[arg-type]


def _title(state: DemoState) -> Table:
    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(ratio=1)
    table.add_column(justify="right")
    minutes, seconds = divmod(int(state.at), 60)
    table.add_row(
        Text(" rowlock: jobs that survive kill -9, on nothing but PostgreSQL", style="bold"),
        f"{minutes:02d}:{seconds:02d} ",
    )
    return table


def _workers(state: DemoState) -> Table:
    table = Table.grid(expand=True, padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, width=11)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for worker in state.workers:
        table.add_row(*_worker(worker))
    return table


def _worker(worker: WorkerState) -> tuple[Text, Text, Text, Text, Text]:
    colour = "green" if worker.alive else "red"
    lease = "" if worker.lease is None else f"lease {worker.lease:.1f} s" if worker.lease > 0 else "lease over"
    held = Text("■" * min(worker.held, worker.slots), style=colour if worker.alive else "bold red")
    held.append("·" * max(0, worker.slots - worker.held), style="dim")
    return (
        Text(f"{'●' if worker.alive else '✗'} worker {worker.number}", style=f"bold {colour}"),
        held,
        Text(f"holds {worker.held:2}"),
        Text(lease, style="dim" if worker.alive else "bold red"),
        Text(worker.note, style="" if worker.alive else "red"),
    )


def _numbers(state: DemoState, *, width: int) -> Table:
    table = Table.grid(expand=True)
    table.add_column(width=_STATES_WIDTH)
    table.add_column(ratio=1)
    room = width - _STATES_WIDTH - 4
    table.add_row(_panel(_states(state), "jobs"), _panel(_totals(state, room), "jobs ended per second"))
    return table


def _states(state: DemoState) -> Table:
    table = Table.grid(expand=True, padding=(0, 1))
    for label, number in ((10, 7), (9, 9)):
        table.add_column(width=label)
        table.add_column(width=number, justify="right")
    states = state.states
    lost = Text(f"{state.lost:,}", style="bold green" if not state.lost else "bold white on red")
    table.add_row("waiting", f"{states['waiting']:,}", Text("succeeded", style="green"), f"{states['succeeded']:,}")
    table.add_row("ready", f"{states['ready']:,}", Text("failed", style="red"), f"{states['failed']:,}")
    table.add_row(Text("  retrying", style="yellow"), f"{state.delayed:,}", "", "")
    table.add_row("running", f"{states['running']:,}", Text("lost", style="bold"), lost)
    return table


def _totals(state: DemoState, width: int) -> Table:
    table = Table.grid(expand=True)
    rates = state.rates[-max(10, width - 6) :]
    now = sum(state.rates[-3:]) / 3
    line = Text(_sparkline(rates), style="green")
    line.append(f" {now:.0f}/s", style="bold")
    table.add_row(line)
    table.add_row(f"{state.enqueued:,} enqueued")
    table.add_row(f"{state.retried:,} retries, {state.rescued:,} rescues")
    table.add_row(f"{state.killed:,} worker{'' if state.killed == 1 else 's'} killed")
    return table


def _sparkline(rates: tuple[int, ...]) -> str:
    most = max(*rates, 1)
    return "".join(_BARS[min(len(_BARS) - 1, rate * len(_BARS) // (most + 1))] if rate else " " for rate in rates)


def _happenings(state: DemoState, lines: int) -> Table:
    table = Table.grid(expand=True, padding=(0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    shown = _worth_showing(state.happenings, lines)
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
