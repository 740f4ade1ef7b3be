"""`rowlock jobs`: show a job, list events."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import click

from rowlock.app.job import show as read_job
from rowlock.app.jobs import Event
from rowlock.cli.jobs.list import tries
from rowlock.cli.shared import text
from rowlock.cli.shared.ids import JOB_ID, whole_id
from rowlock.cli.shared.options import AppChoice, app_options, database_time, debug_option, open_app
from rowlock.cli.shared.output import (
    EXIT_CODES_OF_READS,
    exit_codes,
    json_option,
    masked,
    next_page,
    print_json,
    reveal_option,
)
from rowlock.cli.shared.times import instant
from rowlock.model.names import versioned
from rowlock.model.record import JobRecord

# How times stand in the details of events.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_HIDDEN = "(arguments, result and errors are not this role's to read)"


@click.command(epilog=exit_codes("there is no such job"))
@click.argument("job_id", metavar="ID", type=JOB_ID)
@reveal_option
@json_option
@app_options(required=False)
@debug_option
def show(choice: AppChoice, *, job_id: UUID | str, reveal: bool, as_json: bool) -> None:
    """Show everything about one job. Times, attempts, progress, errors, arguments, result, events."""
    with open_app(choice) as app:
        job_id = whole_id(app, job_id)
        # By its id alone, not by app.jobs.get, which wants a task of a proper name: SQL lets others in.
        record = app.database.converse(lambda: read_job(job_id), atomic=False)
        events = app.jobs.events(job_id=job_id)
        now = database_time(app)
    record, events = masked(record, reveal=reveal), masked(tuple(events), reveal=reveal)
    if as_json:
        print_json({"job": record.to_dict(), "events": [event.to_dict() for event in events]})
    else:
        _show(record, events, now)


def _show(record: JobRecord, events: Sequence[Event], now: datetime) -> None:
    from rowlock.cli.shared.tables import Column, print_block, print_facts, print_table  # noqa: PLC0415  draws

    print_facts(_facts(record) | {name: _when(moment, now) for name, moment in _moments(record).items()})
    print_block("arguments", _HIDDEN if record.args is None else _pretty(record.args))
    if record.result is not None:
        print_block("result", _pretty(record.result))
    if record.errors:
        columns = [
            Column("attempt", right=True),
            Column("type", least=10),
            Column("ended", least=10, rank=1),
            Column("message", least=20),
        ]
        rows = [(error.attempt, error.type, text.age(error.ended_at, now), error.message) for error in record.errors]
        print_table(columns, rows, title="\nerrors")
        if record.errors[-1].traceback:
            print_block("traceback of the last", record.errors[-1].traceback)
    if events:
        show_events(events, now, title="\nevents")


def _facts(record: JobRecord) -> dict[str, object]:
    progress = record.progress
    return {
        "id": record.id,
        "task": versioned(record.task, record.version),
        "parent": record.parent,
        "queue": record.queue,
        "state": record.state if record.cancel_at is None else f"{record.state}, cancelling",
        "waits for": record.waits_for,
        "reason": record.reason,
        "priority": record.priority,
        "attempts": f"{tries(record).replace('/', ' of ')}, {text.count(record.claims, 'claim')}, "
        f"{text.count(record.crashes, 'crash', 'crashes')}",
        "progress": progress and f"{progress.share:.0%} {progress.note or ''}".rstrip(),
        "worker": record.worker,
        "key": record.key and text.line(record.key),
        "tags": ", ".join(record.tags),
    }


def _moments(record: JobRecord) -> dict[str, datetime | None]:
    return {
        "created": record.created_at,
        "run at": record.run_at,
        "started": record.started_at,
        "ended": record.ended_at,
        "expires": record.expires_at,
        "cancel asked": record.cancel_at,
    }


def _when(moment: datetime | None, now: datetime) -> str:
    return "" if moment is None else f"{text.instant(moment)} ({text.age(moment, now)})"


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _parse_place(typed: str) -> Event:
    """Where a page begins, as the page before it printed it: an event's time and id."""
    moment, _, event_id = typed.partition("/")
    try:
        return Event(UUID(event_id), instant(moment), "", None, "", {})
    except ValueError:
        raise click.BadParameter(f"{typed!r} is not a place among events; take it from the page before") from None


@click.command(epilog=EXIT_CODES_OF_READS)
@click.argument("job_id", metavar="[ID]", type=JOB_ID, required=False)
@click.option(
    "--limit", type=click.IntRange(1, 1000), metavar="N", default=50, show_default=True, help="Events a page."
)
@click.option("--before", type=_parse_place, metavar="PLACE", help="The page after the one that named this place.")
@reveal_option
@json_option
@app_options(required=False)
@debug_option
def events(
    choice: AppChoice, *, job_id: UUID | str | None, limit: int, before: Event | None, reveal: bool, as_json: bool
) -> None:
    """List what operators and upkeep did. Newest first; for one job, or for all."""
    with open_app(choice) as app:
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
    from rowlock.cli.shared.tables import Column, id_width, print_table  # noqa: PLC0415  draws

    digits = id_width()
    columns = [
        Column("when", least=10),
        Column("what", least=9),
        Column("by", least=10),
        Column("login", least=8, rank=3),
        Column("job", least=digits, rank=2),
        Column("details", least=12, rank=1),
    ]
    print_table(columns, (_event_row(one, now, digits=digits) for one in found), title=title)


def _event_row(event: Event, now: datetime, *, digits: int) -> tuple[object, ...]:
    job = event.job and str(event.job)[-digits:]
    return text.age(event.at, now), event.kind, event.actor, event.login, job, _details(event)


def _details(event: Event) -> str:
    return ", ".join(f"{name} {_detail(value)}" for name, value in event.details.items() if value is not None)


def _detail(value: object) -> object:
    """A time in UTC to the second, as everywhere on the command line; anything else as it is."""
    if isinstance(value, str) and _TIME.fullmatch(value):
        return text.instant(datetime.fromisoformat(value))
    return value
