"""`rowlock demo`."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from rowlock.cli.options import debug_option

if TYPE_CHECKING:
    from rowlock.demo.play import Report


@click.command(
    short_help="Watch three workers, and what a SIGKILL does to their jobs.",
    epilog="Exit codes: 0 nothing was lost and no job ended twice, 1 otherwise (or it could not run), 2 wrong usage.",
)
@click.option("--once", is_flag=True, help="One round with a few hundred jobs and two killed workers, then a report.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=Path(".rowlock-demo"))
@debug_option
@click.pass_context
def demo(ctx: click.Context, *, once: bool, folder: Path) -> None:
    """Watch three workers, some failing jobs, and what becomes of the jobs of a worker that is killed.

    Starts a PostgreSQL of its own in FOLDER (.rowlock-demo by default) and three worker processes. Jobs stream in, some
    fail and are tried again, and now and then a worker is killed with SIGKILL. Ctrl-C ends it all.
    """
    # Only this command draws: the others start faster without.
    from rowlock.demo.play import LIVE, ONCE, staged  # noqa: PLC0415
    from rowlock.demo.show import shown  # noqa: PLC0415

    click.echo(f"starting PostgreSQL in {folder} and three workers …")
    with _stop_flag() as stop, staged(ONCE if once else LIVE, folder) as play, shown() as show:
        report = play.run(show, stop.is_set)
    click.echo(_summary(report))
    if once and not report.finished:
        raise click.ClickException(
            f"the round was not finished after {report.seconds:.0f} s; look into {folder}/worker-1.log, or try again"
        )
    if not report.audit.is_whole:
        ctx.exit(1)


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


def _summary(report: Report) -> str:
    audit = report.audit
    held = " and ".join(str(count) for count in report.killed_holding)
    facts: list[tuple[str, int, str]] = [
        ("jobs enqueued", audit.enqueued, "each id remembered outside the database"),
        ("done", audit.states["succeeded"], ""),
        ("failed for good", audit.states["failed"], "after their last attempt, as they were made to"),
        ("retried", audit.retried, "attempts that failed and were followed by another"),
        ("workers killed", len(report.killed_holding), f"with SIGKILL, holding {held} jobs" if held else ""),
        ("rescued", report.rescued, "jobs taken back from them and run again"),
    ]
    if audit.left:
        facts.append(("still queued", audit.left, "in the database, where the next worker would find them"))
    lines = [f"  {name:<16}{count:>7,}   {remark}".rstrip() for name, count, remark in facts]
    if audit.ended_twice:
        lines.append(f"ended twice: {audit.ended_twice}")
    return "\n".join([f"In {report.seconds:.0f} s:", *lines, f"lost: {audit.lost}"])
