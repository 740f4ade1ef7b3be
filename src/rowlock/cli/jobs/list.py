"""`rowlock jobs list`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

import click

from rowlock.cli import words
from rowlock.cli.filters import Wanted, filter_options, usage
from rowlock.cli.opened import database_time, opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_LOOKS, json_option, print_json
from rowlock.cli.paging import next_page
from rowlock.model.record import JobRecord
from rowlock.model.verb import ENDED


@click.command("list", epilog=EXIT_CODES_OF_LOOKS)
@filter_options
@click.option("--limit", type=click.IntRange(1, 1000), metavar="N", default=50, show_default=True, help="Jobs a page.")
@click.option("--before", type=click.UUID, metavar="ID", help="The page after the one that named this id.")
@json_option
@app_options(required=False)
@debug_option
def list_jobs(choice: Choice, *, wanted: Wanted, limit: int, before: UUID | None, as_json: bool) -> None:
    """List jobs, live and ended ones, newest first."""
    with opened(choice) as app:
        asked = wanted.filter(app)
        with usage():
            page = app.jobs.list(asked, limit=limit, before=before)
        now = database_time(app)
    if as_json:
        print_json({"jobs": [record.to_dict() for record in page.records], "next": page.next and str(page.next)})
        return
    if wanted.since is not None and set(wanted.state) & ENDED and not asked.is_of_ended:
        click.echo("--since is when jobs were created; for when they ended, say --ended-since", err=True)
    if page.records:
        _show(page.records, now, by_end=asked.is_of_ended)
    else:
        click.echo("no job matches", err=True)
    next_page(page.next)


def _show(records: tuple[JobRecord, ...], now: datetime, *, by_end: bool) -> None:
    from rowlock.cli.tables import Column, show  # noqa: PLC0415  draws

    columns = [
        Column("id", least=36),
        Column("state", least=9),
        Column("task", least=11),
        Column("queue", least=7, rank=3),
        Column("ended" if by_end else "created", least=10, rank=1),
        Column("spent", least=4, rank=4, right=True),
        Column("note", least=12, rank=2),
    ]
    show(columns, (_row(record, now, by_end=by_end) for record in records))


def _row(record: JobRecord, now: datetime, *, by_end: bool) -> tuple[object, ...]:
    spent = f"{record.failures}/{record.attempts}"
    when = words.age(record.ended_at if by_end else record.created_at, now)
    note = "; ".join(_notes(record, now))
    return record.id, record.state, record.task, record.queue, when, spent, note


def _notes(record: JobRecord, now: datetime) -> Iterator[str]:
    """What one wants to know of a job in this state."""
    if record.state == "ready" and record.run_at > now:
        yield f"due {words.age(record.run_at, now)}"
    if record.state in ("waiting", "parked"):
        yield f"for {record.waits_for}" if record.waits_for else f"wakes {words.age(record.run_at, now)}"
    if record.state == "running" and record.started_at is not None:
        yield f"since {words.span(now - record.started_at)}"
        if record.cancel_at is not None:
            yield "cancelling"
        if record.progress is not None:
            yield f"{record.progress.share:.0%}"
    if record.reason:
        yield record.reason
    if record.errors and record.state != "succeeded":
        yield f"{record.errors[-1].type}: {record.errors[-1].message}"
