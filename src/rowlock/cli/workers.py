"""`rowlock workers`: list them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import click

from rowlock.cli.shared import text
from rowlock.cli.shared.options import AppChoice, app_options, debug_option, open_app
from rowlock.cli.shared.output import EXIT_CODES_OF_READS, json_option, print_json
from rowlock.model.redact import redact_text
from rowlock.model.stats.stats import WorkerStats


@click.command(epilog=EXIT_CODES_OF_READS)
@json_option
@app_options(required=False)
@debug_option
def workers(choice: AppChoice, *, as_json: bool) -> None:
    """List workers: their hosts, queues, jobs held and leases."""
    with open_app(choice) as app:
        stats = app.stats()
    found = stats.fleet.workers
    if found is None:
        raise click.ClickException(f"the workers could not be read: {stats.unknown['workers']}")
    if as_json:
        print_json({"workers": [worker_facts(worker) for worker in found]})
    elif found:
        show_workers(found, stats.at)
    else:
        click.echo("no worker is running; start one: rowlock worker --app MODULE", err=True)


def worker_facts(worker: WorkerStats) -> dict[str, Any]:
    """One worker for JSON."""
    return {
        "id": worker.id,
        "host": worker.host,
        "pid": worker.pid,
        "queues": list(worker.queues),
        "slots": worker.slots,
        "held": worker.held,
        "lease_left": worker.lease_left.total_seconds(),
        "started_at": worker.started_at.isoformat(),
        "version": worker.version,
        "condition": worker.vitals.health,
        "blocked": None if worker.blocked is None else worker.blocked.total_seconds(),
        "blocked_by": worker.blocked_by,
        "stuck": worker.stuck,
        "restarts": worker.restarts,
        "fault": worker.fault and redact_text(worker.fault),
        "failing": worker.failing and redact_text(worker.failing),
        "failing_since": worker.failing_since and worker.failing_since.isoformat(),
    }


def show_workers(found: Sequence[WorkerStats], now: datetime, *, title: str | None = None) -> None:
    """The table of workers."""
    from rowlock.cli.shared.tables import Column, print_table  # noqa: PLC0415  draws

    # Only where there is any: an empty column takes room and says nothing.
    stuck = [Column("stuck", least=5, right=True)] if any(worker.stuck for worker in found) else []
    columns = [
        Column("host", least=10),
        Column("pid", right=True),
        Column("held", least=7, right=True),
        Column("lease", least=6),
        *stuck,
        Column("started", least=10, rank=2),
        Column("queues", least=8, rank=1),
        Column("version", least=5, rank=3),
        Column("id", least=36, rank=4),
    ]
    print_table(columns, (_row(worker, now, stuck=bool(stuck)) for worker in found), title=title)
    for worker in found:
        if wrong := worker.vitals.says:
            click.echo(f"{worker.host}:{worker.pid} {wrong}")
        if worker.restarts:
            times = f"{text.count(worker.restarts, 'time')} in a row"
            fault = text.line(redact_text(worker.fault or "it is not known"))
            click.echo(f"{worker.host}:{worker.pid} restarted {times} after an internal error: {fault}")
        elif worker.fault:
            click.echo(f"{worker.host}:{worker.pid} claims no more jobs: {text.line(redact_text(worker.fault))}")
        if worker.failing and worker.failing_since:
            failing, lasts = text.line(redact_text(worker.failing)), text.span(now - worker.failing_since)
            click.echo(f"{worker.host}:{worker.pid} has been trying again and again for {lasts}: {failing}")


def _row(worker: WorkerStats, now: datetime, *, stuck: bool) -> tuple[object, ...]:
    lease = text.span(worker.lease_left) if worker.lease_left > timedelta(0) else "over"
    return (
        worker.host,
        worker.pid,
        f"{worker.held}/{worker.slots}",
        lease,
        *([worker.stuck] if stuck else []),
        text.age(worker.started_at, now),
        ", ".join(worker.queues),
        worker.version,
        worker.id,
    )
