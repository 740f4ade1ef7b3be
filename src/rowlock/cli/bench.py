"""`rowlock bench`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rowlock.app.app import Rowlock
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_LOOKS, json_option, print_json
from rowlock.db.embedded.disposable import scratch
from rowlock.db.errors import readable_errors

if TYPE_CHECKING:
    from rowlock.cli.measuring import Figures

SCHEMA = "rowlock_bench"
_MOST = 1_000_000


@click.command(epilog=EXIT_CODES_OF_LOOKS)
@app_options(required=False, with_schema=False)
@click.option(
    "--jobs",
    type=click.IntRange(1, _MOST),
    metavar="N",
    default=20_000,
    show_default=True,
    help="How many jobs to enqueue and to drain.",
)
@json_option
@debug_option
def bench(choice: Choice, *, jobs: int, as_json: bool) -> None:
    """Measure Rowlock on your own database.

    In a schema of its own, rowlock_bench, which is dropped at the end: the round trip, enqueues one by one and in bulk,
    a worker in this process that drains them, and how long a job waits for an idle worker.
    """
    # Only here: the other commands start faster without.
    from rowlock.cli.bars import bars  # noqa: PLC0415
    from rowlock.cli.measuring import measure  # noqa: PLC0415

    named = choice.open()
    with readable_errors(named.database):
        server = named.database.server()
        there = Rowlock(server.conninfo, schema=SCHEMA, pooler=server.pooler, listen_url=server.listen)
        with scratch(server, SCHEMA), bars() as track:
            figures = measure(there, jobs=jobs, track=track)
    if as_json:
        print_json({"database": str(named.database.address), **figures.to_dict()})
    else:
        _show(figures, str(named.database.address))


def _show(figures: Figures, where: str) -> None:
    from rowlock.cli.tables import Column, show  # noqa: PLC0415  draws

    rows = [
        ("round trip", "", figures.round_trip.p50_ms, figures.round_trip.p99_ms),
        ("enqueue one", "", figures.enqueue_one.p50_ms, figures.enqueue_one.p99_ms),
        (f"enqueue {figures.jobs:,} in bulk", f"{figures.enqueue_many_per_second:,.0f}", "", ""),
        (f"drain {figures.jobs:,}", f"{figures.drain_per_second:,.0f}", "", ""),
        ("latency, idle worker", "", figures.latency.p50_ms, figures.latency.p99_ms),
    ]
    columns = [
        Column("", least=20),
        Column("jobs/s", right=True),
        Column("p50 ms", right=True),
        Column("p99 ms", right=True),
    ]
    show(columns, rows, title=where)
