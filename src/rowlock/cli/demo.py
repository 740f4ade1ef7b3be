"""`rowlock demo`: three workers and buttons to crash them."""

from __future__ import annotations

import os
import signal
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from rowlock.cli.dashboard import with_extra
from rowlock.cli.shared.options import debug_option

if TYPE_CHECKING:
    from rowlock.demo.job_log import Audit
    from rowlock.demo.watch import Watch


@click.command(
    short_help="Three workers in your browser, with a Crash button each.",
    epilog="Exit codes: 0 nothing was lost and no job ended twice, 1 otherwise (or it could not run), 2 wrong usage.",
)
@click.option("--once", is_flag=True, help="One round with a few hundred jobs and two killed workers, then a report.")
@click.option("--terminal", is_flag=True, help="Show it in this terminal, and kill a worker now and then.")
@click.option("--port", type=click.IntRange(0, 65535), default=8781, show_default=True, help="For the page; 0 is any.")
@click.option("--open/--no-open", "opens", default=None, help="Open the page in a browser, or only print its address.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=Path(".rowlock-demo"))
@debug_option
@click.pass_context
def demo(ctx: click.Context, *, once: bool, terminal: bool, port: int, opens: bool | None, folder: Path) -> None:
    """Three workers, a stream of jobs, and buttons to crash, flood, stall and restart what they work on.

    Starts a PostgreSQL of its own in FOLDER (.rowlock-demo by default), three worker processes, and the dashboard with
    a page on which each worker has a Crash button: a real SIGKILL. Ctrl-C ends it all and counts what was lost.
    """
    click.echo(f"starting PostgreSQL in {folder} and three workers …")
    in_terminal = once or terminal
    audit = _run_in_terminal(folder, once=once) if in_terminal else _show_page(folder, port=port, opens=opens)
    if not audit.is_whole:
        ctx.exit(1)


def _show_page(folder: Path, *, port: int, opens: bool | None) -> Audit:
    """The demo in a browser."""
    with with_extra():
        from rowlock.dashboard.access.tokens import Tokens, new_token  # noqa: PLC0415  its packages are an extra
        from rowlock.dashboard.http.serve import listen, serve  # noqa: PLC0415
        from rowlock.demo.browser.page import dashboard_of  # noqa: PLC0415
        from rowlock.demo.browser.sandbox import sandbox  # noqa: PLC0415

    listening = listen("127.0.0.1", port)
    token, line = new_token("you", "admin")
    link = f"http://127.0.0.1:{listening.getsockname()[1]}/login?next=/demo#{token}"

    def ready() -> None:
        click.echo(f"the demo is at {link}\nCtrl-C ends it")
        if opens or (opens is None and _has_screen()):
            webbrowser.open(link)

    with sandbox(folder) as (running, app):
        serve(dashboard_of(app, running, auth=Tokens([line])), listening, ready=ready)
        click.echo("stopping: workers finish or hand back what they hold, then every job is looked for …")
        audit = running.close()
        click.echo(summary(audit, running.watch))
    return audit


def _has_screen() -> bool:
    """Whether a browser would be seen, and not take over the terminal."""
    return sys.stdout.isatty() and (
        sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    )


def _run_in_terminal(folder: Path, *, once: bool) -> Audit:
    """The demo in a terminal, by itself."""
    # Only this command draws: the others start faster without.
    from rowlock.demo.terminal.run import LIVE, ONCE, started  # noqa: PLC0415
    from rowlock.demo.terminal.view import shown  # noqa: PLC0415

    with _stop_flag() as stop, started(ONCE if once else LIVE, folder) as run, shown() as show:
        report = run.run(show, stop.is_set)
    click.echo(summary(report.audit, report.watch))
    if once and not report.finished:
        raise click.ClickException(
            f"the round was not finished after {report.watch.at:.0f} s; look into {folder}/worker-1.log, or try again"
        )
    return report.audit


class _Flag:
    """Set by the first SIGINT or SIGTERM; the second one has its usual effect."""

    def __init__(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def set(self, number: int, _frame: FrameType | None) -> None:
        self._set = True
        signal.signal(number, signal.default_int_handler)


@contextmanager
def _stop_flag() -> Iterator[_Flag]:
    flag = _Flag()
    before = {number: signal.signal(number, flag.set) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def summary(audit: Audit, watch: Watch) -> str:
    """What happened, in lines."""
    holding = [victim.held for victim in watch.victims]
    held = " and ".join(map(str, holding))
    facts: list[tuple[str, int, str]] = [
        ("jobs enqueued", audit.enqueued, "each id remembered outside the database"),
        ("done", audit.states["succeeded"], ""),
        ("failed for good", audit.states["failed"], "after their last attempt, as they were made to"),
        ("retried", audit.retried, "attempts that failed and were followed by another"),
        ("workers killed", len(holding), f"with SIGKILL, holding {held} jobs" if held else ""),
        ("rescued", watch.rescued, "jobs taken back from them and run again"),
    ]
    if audit.left:
        facts.append(("still queued", audit.left, "in the database, where the next worker would find them"))
    lines = [f"  {name:<16}{count:>7,}   {remark}".rstrip() for name, count, remark in facts]
    if audit.ended_twice:
        lines.append(f"ended twice: {audit.ended_twice}")
    return "\n".join([f"In {watch.at:.0f} s:", *lines, f"lost: {audit.lost}"])
