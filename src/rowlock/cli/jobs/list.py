"""`rowlock jobs`: list jobs, count failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

import click

from rowlock.cli.shared import text
from rowlock.cli.shared.filters import FilterOptions, filter_options
from rowlock.cli.shared.ids import SHOWN
from rowlock.cli.shared.options import AppChoice, app_options, database_time, debug_option, open_app, usage_errors
from rowlock.cli.shared.output import EXIT_CODES_OF_READS, json_option, masked, next_page, print_json, reveal_option
from rowlock.model.failure_groups import FailureGroup, Failures
from rowlock.model.record import JobRecord


@click.command("list", epilog=EXIT_CODES_OF_READS)
@filter_options
@click.option("--limit", type=click.IntRange(1, 1000), metavar="N", default=50, show_default=True, help="Jobs a page.")
@click.option("--before", metavar="PLACE", help="The page after the one that ended here.")
@reveal_option
@json_option
@app_options(required=False)
@debug_option
def list_jobs(
    choice: AppChoice, *, filters: FilterOptions, limit: int, before: str | None, reveal: bool, as_json: bool
) -> None:
    """List jobs, live and ended ones, newest first.

    Ended ones alone, by --state or --ended-since, begin with the one that ended last.
    """
    with open_app(choice) as app:
        job_filter = filters.to_filter(app)
        with usage_errors():
            page = app.jobs.list(job_filter, limit=limit, before=before)
        now = database_time(app)
    if as_json:
        shown = [masked(record, reveal=reveal).to_dict() for record in page.records]
        print_json({"jobs": shown, "next": page.next and str(page.next)})
        return
    filters.explain_since(filters.state)
    if page.records:
        _show(page.records, now, states=tuple(job_filter.states or ()), by_end=job_filter.is_by_end, reveal=reveal)
    else:
        click.echo("no job matches", err=True)
    next_page(page.next)


def _show(records: tuple[JobRecord, ...], now: datetime, *, states: Sequence[str], by_end: bool, reveal: bool) -> None:
    from rowlock.cli.shared.tables import Column, id_width, print_table  # noqa: PLC0415  draws

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
    print_table(columns, rows)


def _row(record: JobRecord, now: datetime, *, digits: int, by_end: bool, reveal: bool) -> tuple[object, ...]:
    when = text.age(record.ended_at if by_end else record.created_at, now)
    note = masked("; ".join(_notes(record, now)), reveal=reveal)
    return str(record.id)[-digits:], record.state, record.task, record.queue, when, tries(record), note


def tries(record: JobRecord) -> str:
    """Which attempt it is in, or ended in, of how many; before the first one, and between two, how many are spent."""
    is_in_one = record.state in ("running", "succeeded")  # that is not among the failures
    return f"{record.failures + is_in_one}/{record.attempts}"


def _notes(record: JobRecord, now: datetime) -> Iterator[str]:
    """What matters about a job in this state."""
    if record.state == "ready" and record.run_at > now:
        yield f"due {text.age(record.run_at, now)}"
    if record.state in ("waiting", "parked"):
        yield f"for {record.waits_for}" if record.waits_for else f"wakes {text.age(record.run_at, now)}"
    if record.state == "running" and record.started_at is not None:
        yield f"since {text.span(now - record.started_at)}"
        if record.cancel_at is not None:
            yield "cancelling"
        if record.progress is not None:
            yield f"{record.progress.share:.0%}"
    if record.errors and record.state != "succeeded":
        yield f"{record.errors[-1].type}: {record.errors[-1].message}"
    if record.reason:
        yield record.reason


@click.command(epilog=EXIT_CODES_OF_READS)
@filter_options
@click.option(
    "--most",
    type=click.IntRange(1, 100_000),
    metavar="N",
    default=10_000,
    show_default=True,
    help="Count so many failed jobs, those that ended last.",
)
@reveal_option
@json_option
@app_options(required=False)
@debug_option
def failures(choice: AppChoice, *, filters: FilterOptions, most: int, reveal: bool, as_json: bool) -> None:
    """Count failed jobs by task and error: what went wrong, how often, and since when.

    Errors are alike if their types are, and their messages but for numbers, ids and what stands in quotes. The
    largest group comes first, each with the id of its latest job.
    """
    with open_app(choice) as app:
        job_filter = filters.to_filter(app)
        with usage_errors():
            found = app.jobs.failures(job_filter, most=most)
        now = database_time(app)
    found = replace(found, groups=masked(found.groups, reveal=reveal))
    if as_json:
        print_json(found.to_dict())
        return
    filters.explain_since({"failed"})
    if found.groups:
        _show_groups(found.groups, now)
    else:
        click.echo("no job that has failed matches", err=True)
    if found.back_to is not None:
        click.echo(_counted_note(found, now), err=True)


def _show_groups(groups: tuple[FailureGroup, ...], now: datetime) -> None:
    from rowlock.cli.shared.tables import Column, print_table  # noqa: PLC0415  draws

    columns = [
        Column("jobs", right=True),
        Column("task", least=16),
        Column("error", least=24),
        Column("first", least=10, rank=2),
        Column("last", least=10, rank=1),
        Column("latest job", least=SHOWN),
    ]
    print_table(columns, [_group_row(group, now) for group in groups])


def _group_row(group: FailureGroup, now: datetime) -> tuple[object, ...]:
    error = ": ".join(filter(None, (group.error, group.pattern)))
    times = (text.age(group.first, now), text.age(group.last, now))
    return f"{group.count:,}", group.task, error, *times, str(group.example)[-SHOWN:]


def _counted_note(found: Failures, now: datetime) -> str:
    reached = "" if found.back_to is None else text.age(found.back_to, now)
    return (
        f"counted the {found.looked:,} failed jobs that ended last, back to {reached}; "
        "for others say --ended-before, for more --most"
    )
