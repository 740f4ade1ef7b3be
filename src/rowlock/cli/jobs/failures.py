"""`rowlock jobs failures`."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import click

from rowlock.cli import words
from rowlock.cli.filters import Wanted, filter_options, usage
from rowlock.cli.ids import SHOWN
from rowlock.cli.masking import masked, reveal_option
from rowlock.cli.opened import database_time, opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_LOOKS, json_option, print_json
from rowlock.model.failure_groups import FailureGroup, Failures


@click.command(epilog=EXIT_CODES_OF_LOOKS)
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
def failures(choice: Choice, *, wanted: Wanted, most: int, reveal: bool, as_json: bool) -> None:
    """Count failed jobs by task and error: what went wrong, how often, and since when.

    Errors are alike if their types are, and their messages but for numbers, ids and what stands in quotes. The
    largest group comes first, each with the id of its latest job.
    """
    with opened(choice) as app:
        asked = wanted.filter(app)
        with usage():
            found = app.jobs.failures(asked, most=most)
        now = database_time(app)
    found = replace(found, groups=masked(found.groups, reveal=reveal))
    if as_json:
        print_json(found.to_dict())
        return
    if found.groups:
        _show(found.groups, now)
    else:
        click.echo("no job that has failed matches", err=True)
    if found.back_to is not None:
        click.echo(_bound(found, now), err=True)


def _show(groups: tuple[FailureGroup, ...], now: datetime) -> None:
    from rowlock.cli.tables import Column, show  # noqa: PLC0415  draws

    columns = [
        Column("jobs", right=True),
        Column("task", least=16),
        Column("error", least=24),
        Column("first", least=10, rank=2),
        Column("last", least=10, rank=1),
        Column("latest job", least=SHOWN),
    ]
    show(columns, [_row(group, now) for group in groups])


def _row(group: FailureGroup, now: datetime) -> tuple[object, ...]:
    error = ": ".join(filter(None, (group.error, group.pattern)))
    times = (words.age(group.first, now), words.age(group.last, now))
    return f"{group.count:,}", group.task, error, *times, str(group.example)[-SHOWN:]


def _bound(found: Failures, now: datetime) -> str:
    reached = "" if found.back_to is None else words.age(found.back_to, now)
    return (
        f"counted the {found.looked:,} failed jobs that ended last, back to {reached}; "
        "for others say --ended-before, for more --most"
    )
