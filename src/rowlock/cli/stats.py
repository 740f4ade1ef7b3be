"""`rowlock stats`: queues, tasks, workers and the database at one moment."""

from __future__ import annotations

import io
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from datetime import datetime, timedelta
from typing import Final

import click

from rowlock.app.app import Rowlock
from rowlock.cli.queues import show_queues
from rowlock.cli.shared import text
from rowlock.cli.shared.options import AppChoice, app_options, debug_option, open_app
from rowlock.cli.shared.output import EXIT_CODES_OF_READS, json_option, masked, print_json
from rowlock.cli.tasks import show_tasks
from rowlock.cli.workers import show_workers
from rowlock.db.errors import readable_errors
from rowlock.errors import RowlockError
from rowlock.model.pause import Pause
from rowlock.model.stats.stats import DatabaseStats, FleetStats, Recent, Stats

# Outcomes of attempts, as `app.rates()` names them → as they are printed.
_OUTCOMES = {"succeeded": "succeeded", "failed": "failed", "cancelled": "cancelled", "retried": "tried again"}

_EVERY: Final = 1.0
_OTHER_SCREEN, _BACK = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # without the cursor, and with it
_HOME, _REST_OF_LINE, _BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


@click.command(epilog=EXIT_CODES_OF_READS)
@click.option("--watch", is_flag=True, help="Refresh every second, until Ctrl-C.")
@json_option
@app_options(required=False)
@debug_option
def stats(choice: AppChoice, *, watch: bool, as_json: bool) -> None:
    """Show queues, tasks, workers and the database at one moment.

    Rates are over the last full minutes, totals over the last hour. `?` is what could not be learned: the last lines
    say why. With --watch it refreshes every second, until Ctrl-C.
    """
    with open_app(choice) as app:
        if watch:
            _watch(lambda: _show_once(app, as_json=as_json))
        else:
            _show_once(app, as_json=as_json)


def _show_once(app: Rowlock, *, as_json: bool) -> None:
    found = masked(app.stats())
    pauses = masked((*app.queues.pauses(), *app.tasks.pauses()))
    totals = _last_hour(app)
    if as_json:
        print_json({**found.to_dict(), "last_hour": totals, "pauses": [pause.to_dict() for pause in pauses]})
    else:
        _show(found, pauses, totals)


def _last_hour(app: Rowlock) -> dict[str, int] | None:
    """How many jobs ended, and how; None for a role that may not see it."""
    try:
        with readable_errors(app.database):
            points = app.rates(span=timedelta(hours=1)).points
    except RowlockError:
        return None
    return {name: sum(getattr(point, name) for point in points) for name in _OUTCOMES}


def _show(found: Stats, pauses: Sequence[Pause], totals: dict[str, int] | None) -> None:
    from rowlock.cli.shared.tables import print_facts  # noqa: PLC0415  draws

    click.echo(f"{text.instant(found.at)}, rates over {text.span(found.window)}")
    hour = (
        text.UNKNOWN
        if totals is None
        else ", ".join(f"{totals[name]:,} {outcome}" for name, outcome in _OUTCOMES.items())
    )
    click.echo(f"last hour: {hour}")
    if found.queues:
        click.echo()
        show_queues(found.queues, {pause.queue: pause for pause in pauses if pause.queue is not None}, found.at)
    if found.tasks:
        click.echo()
        show_tasks(found.tasks, {pause.task: pause for pause in pauses if pause.task is not None}, found.at)
    if found.fleet.workers:
        click.echo()
        show_workers(found.fleet.workers, found.at)
    print_facts(dict(_fleet(found.fleet)), title="\nfleet")
    print_facts(dict(_database(found.database, found.at)), title="\ndatabase")
    _show_waits(found.database)
    _show_snapshots(found.database)
    if found.unknown:
        print_facts(found.unknown, title="\nunknown")


def _fleet(fleet: FleetStats) -> Iterator[tuple[str, str]]:
    yield "workers", text.UNKNOWN if fleet.workers is None else f"{len(fleet.workers):,}"
    yield "rescued", _recent(fleet.rescued)
    yield "poisoned", _recent(fleet.poisoned)
    if fleet.suspects is not None and fleet.suspects.oldest is not None:
        suspects = fleet.suspects
        yield (
            "suspects",
            f"{text.known_count(suspects.waiting)} waiting, the first for {text.known_span(suspects.oldest)}",
        )
    if fleet.claims is not None:
        claims = fleet.claims
        yield "claims", f"{text.span(claims.mean)}, at most {text.span(claims.max)}, {claims.rows:.3g} jobs a claim"


def _recent(recent: Recent | None) -> str:
    if recent is None:
        return text.UNKNOWN
    return f"{text.known_count(recent.hour)} in the last hour, {text.known_count(recent.day)} in the last day"


def _database(database: DatabaseStats, now: datetime) -> Iterator[tuple[str, str]]:
    if database.sizes is not None:
        sizes = database.sizes
        yield "jobs", f"{text.size(sizes.jobs)}, indexes {text.size(sum(sizes.jobs_indexes.values()))}"
        yield "history", f"{text.size(sizes.history)}, about {text.count(sizes.history_rows, 'row')}"
        yield "events", text.size(sizes.events)
    if database.vacuum is not None:
        vacuum = database.vacuum
        latest = max(filter(None, (vacuum.last_vacuum, vacuum.last_autovacuum)), default=None)
        last = text.age(latest, now) or "never"
        yield "vacuum of jobs", f"{vacuum.dead:,} dead rows beside {vacuum.live:,} live ones, last done: {last}"
    if database.claim is not None:
        claim = database.claim
        touched = f"{text.count(claim.buffers, 'buffer')} for {text.count(claim.rows, 'row')}"
        yield "a claim now", f"{touched}, {text.span(claim.took)}"
    if database.cleanup is not None and database.cleanup.partitions:
        behind = text.span(database.cleanup.lag)
        yield "retention", f"{text.count(database.cleanup.partitions, 'expired partition')}, {behind} behind"
    if database.connections is not None:
        yield "connections", f"{database.connections.used:,} of {database.connections.limit:,}"


def _show_waits(database: DatabaseStats) -> None:
    from rowlock.cli.shared.tables import Column, print_table  # noqa: PLC0415  draws

    if database.lock_waits:
        columns = [
            Column("pid", right=True),
            Column("application", least=10),
            Column("for", right=True),
            Column("table", rank=1),
            Column("mode", rank=2),
            Column("blocked by", least=10),
        ]
        rows = [
            (
                wait.pid,
                wait.application,
                text.span(wait.waited),
                wait.table,
                wait.mode,
                ", ".join(map(str, wait.blocked_by)),
            )
            for wait in database.lock_waits
        ]
        print_table(columns, rows, title="\nlock waits")


def _show_snapshots(database: DatabaseStats) -> None:
    from rowlock.cli.shared.tables import Column, print_table  # noqa: PLC0415  draws

    if database.snapshots:
        columns = [
            Column("kind", least=7),
            Column("name", least=10),
            Column("pid", rank=1, right=True),
            Column("for", right=True),
            Column("transactions", rank=2, right=True),
            Column("user", rank=4),
            Column("state", rank=3),
        ]
        rows = [
            (one.kind, one.name, one.pid, text.known_span(one.held_for), f"{one.transactions:,}", one.user, one.state)
            for one in database.snapshots
        ]
        print_table(columns, rows, title="\noldest snapshots, which keep vacuum from its work")


def _watch(show: Callable[[], None]) -> None:
    """Show it until Ctrl-C: on a terminal each time in the place of the last, else one after the other."""
    try:
        if sys.stdout.isatty():
            _redrawn(show)
        else:
            _repeated(show)
    except KeyboardInterrupt:
        pass  # the way to end it


def _repeated(show: Callable[[], None]) -> None:
    while True:
        show()
        click.echo()
        time.sleep(_EVERY)


def _redrawn(show: Callable[[], None]) -> None:
    sys.stdout.write(_OTHER_SCREEN)
    try:
        while True:
            drawn = _Frame()
            with redirect_stdout(drawn):
                show()
            sys.stdout.write(_in_place(drawn.getvalue().splitlines(), shutil.get_terminal_size().lines))
            sys.stdout.flush()
            time.sleep(_EVERY)
    finally:
        sys.stdout.write(_BACK)
        sys.stdout.flush()


def _in_place(lines: list[str], height: int) -> str:
    """These lines over what is on the screen; those that have no room are counted."""
    if len(lines) >= height:
        lines = [*lines[: height - 2], f"… and {len(lines) - height + 2:,} more lines: make the window higher"]
    return _HOME + "".join(f"{line}{_REST_OF_LINE}\r\n" for line in lines) + _BELOW


class _Frame(io.StringIO):
    """What is drawn for a terminal, before it is written there at once."""

    def isatty(self) -> bool:
        return True
