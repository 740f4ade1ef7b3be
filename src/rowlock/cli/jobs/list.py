"""`rowlock jobs list`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import click

from rowlock.cli import words
from rowlock.cli.filters import Wanted, filter_options, usage
from rowlock.cli.masking import masked, reveal_option
from rowlock.cli.opened import database_time, opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_LOOKS, json_option, print_json
from rowlock.cli.paging import next_page
from rowlock.model.filter import ENDED
from rowlock.model.record import JobRecord


@click.command("list", epilog=EXIT_CODES_OF_LOOKS)
@filter_options
@click.option("--limit", type=click.IntRange(1, 1000), metavar="N", default=50, show_default=True, help="Jobs a page.")
@click.option("--before", metavar="PLACE", help="The page after the one that ended here.")
@reveal_option
@json_option
@app_options(required=False)
@debug_option
def list_jobs(choice: Choice, *, wanted: Wanted, limit: int, before: str | None, reveal: bool, as_json: bool) -> None:
    """List jobs, live and ended ones, newest first.

    Ended ones alone, by --state or --ended-since, begin with the one that ended last.
    """
    with opened(choice) as app:
        asked = wanted.filter(app)
        with usage():
            page = app.jobs.list(asked, limit=limit, before=before)
        now = database_time(app)
    if as_json:
        shown = [masked(record, reveal=reveal).to_dict() for record in page.records]
        print_json({"jobs": shown, "next": page.next and str(page.next)})
        return
    if wanted.since is not None and set(wanted.state) & ENDED and not asked.is_of_ended:
        click.echo("--since is when jobs were created; for when they ended, say --ended-since", err=True)
    if page.records:
        _show(page.records, now, states=tuple(asked.states or ()), by_end=asked.is_by_end, reveal=reveal)
    else:
        click.echo("no job matches", err=True)
    next_page(page.next)


def _show(records: tuple[JobRecord, ...], now: datetime, *, states: Sequence[str], by_end: bool, reveal: bool) -> None:
    from rowlock.cli.tables import Column, id_width, show  # noqa: PLC0415  draws

    digits = id_width()
    columns = [
        Column("id", least=digits),
        Column("state", least=9),
        Column("task", least=20),
        Column("queue", least=7, rank=4),
        Column("ended" if by_end else "created", least=10, rank=2),
        Column("tries", least=4, rank=3, right=True),
        Column("note", least=24, rank=1),
    ]
    rows = [_row(record, now, digits=digits, by_end=by_end, reveal=reveal) for record in records]
    if len(states) == 1:  # which says it already
        columns = [column for column in columns if column.title != "state"]
        rows = [(row[0], *row[2:]) for row in rows]
    show(columns, rows)


def _row(record: JobRecord, now: datetime, *, digits: int, by_end: bool, reveal: bool) -> tuple[object, ...]:
    when = words.age(record.ended_at if by_end else record.created_at, now)
    note = masked("; ".join(_notes(record, now)), reveal=reveal)
    return str(record.id)[-digits:], record.state, record.task, record.queue, when, tries(record), note


def tries(record: JobRecord) -> str:
    """Which attempt it is in, or ended in, of how many; before the first one, and between two, how many are spent."""
    is_in_one = record.state in ("running", "succeeded")  # that is not among the failures
    return f"{record.failures + is_in_one}/{record.attempts}"


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
    if record.errors and record.state != "succeeded":
        yield f"{record.errors[-1].type}: {record.errors[-1].message}"
    if record.reason:
        yield record.reason
