"""`rowlock jobs events`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import click

from rowlock.app.jobs import Event
from rowlock.cli import words
from rowlock.cli.ids import JOB_ID, whole_id
from rowlock.cli.masking import masked, reveal_option
from rowlock.cli.moments import instant
from rowlock.cli.opened import database_time, opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_LOOKS, json_option, print_json
from rowlock.cli.paging import next_page

# How times stand in the details of events.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")


def _place(typed: str) -> Event:
    """Where a page begins, as the page before it has said: an event's time and id."""
    moment, _, event_id = typed.partition("/")
    try:
        return Event(UUID(event_id), instant(moment), "", None, "", {})
    except ValueError:
        raise click.BadParameter(f"{typed!r} is no place among events; take it from the page before") from None


@click.command(epilog=EXIT_CODES_OF_LOOKS)
@click.argument("job_id", metavar="[ID]", type=JOB_ID, required=False)
@click.option(
    "--limit", type=click.IntRange(1, 1000), metavar="N", default=50, show_default=True, help="Events a page."
)
@click.option("--before", type=_place, metavar="PLACE", help="The page after the one that named this place.")
@reveal_option
@json_option
@app_options(required=False)
@debug_option
def events(
    choice: Choice, *, job_id: UUID | str | None, limit: int, before: Event | None, reveal: bool, as_json: bool
) -> None:
    """List what operators and upkeep did. Newest first; to one job, or at all."""
    with opened(choice) as app:
        job_id = None if job_id is None else whole_id(app, job_id)
        found = app.jobs.events(job_id, limit=limit, before=before)
        now = database_time(app)
    following = f"{found[-1].at.isoformat()}/{found[-1].id}" if len(found) == limit else None
    found = masked(tuple(found), reveal=reveal)
    if as_json:
        print_json({"events": [event.to_dict() for event in found], "next": following})
        return
    if found:
        show_events(found, now)
    else:
        click.echo("nothing has been done", err=True)
    next_page(following)


def show_events(found: Sequence[Event], now: datetime, *, title: str | None = None) -> None:
    """The table of events."""
    from rowlock.cli.tables import Column, id_width, show  # noqa: PLC0415  draws

    digits = id_width()
    columns = [
        Column("when", least=10),
        Column("what", least=9),
        Column("by", least=10),
        Column("login", least=8, rank=3),
        Column("job", least=digits, rank=2),
        Column("details", least=12, rank=1),
    ]
    show(columns, (_row(one, now, digits=digits) for one in found), title=title)


def _row(event: Event, now: datetime, *, digits: int) -> tuple[object, ...]:
    job = event.job and str(event.job)[-digits:]
    return words.age(event.at, now), event.kind, event.actor, event.login, job, _details(event)


def _details(event: Event) -> str:
    return ", ".join(f"{name} {_said(value)}" for name, value in event.details.items() if value is not None)


def _said(value: object) -> object:
    """A time in UTC to the second, as everywhere on the command line; anything else as it is."""
    if isinstance(value, str) and _TIME.fullmatch(value):
        return words.instant(datetime.fromisoformat(value))
    return value
