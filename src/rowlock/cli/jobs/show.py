"""`rowlock jobs show`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import click

from rowlock.app.job import show as read_job
from rowlock.app.jobs import Event
from rowlock.cli import words
from rowlock.cli.ids import JOB_ID, whole_id
from rowlock.cli.jobs.events import show_events
from rowlock.cli.jobs.list import tries
from rowlock.cli.masking import masked, reveal_option
from rowlock.cli.opened import database_time, opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_VERBS, json_option, print_json
from rowlock.model.names import versioned
from rowlock.model.record import JobRecord

_HIDDEN = "(arguments, result and errors are not this role's to read)"


@click.command(epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "there is no such job"))
@click.argument("job_id", metavar="ID", type=JOB_ID)
@reveal_option
@json_option
@app_options(required=False)
@debug_option
def show(choice: Choice, *, job_id: UUID | str, reveal: bool, as_json: bool) -> None:
    """Show everything about one job. Times, attempts, progress, errors, arguments, result, events."""
    with opened(choice) as app:
        job_id = whole_id(app, job_id)
        # By its id alone, not by app.get, which wants a task of a proper name: SQL lets others in.
        record = app.database.converse(lambda: read_job(job_id), atomic=False)
        events = app.jobs.events(job_id=job_id)
        now = database_time(app)
    record, events = masked(record, reveal=reveal), masked(tuple(events), reveal=reveal)
    if as_json:
        print_json({"job": record.to_dict(), "events": [event.to_dict() for event in events]})
    else:
        _show(record, events, now)


def _show(record: JobRecord, events: Sequence[Event], now: datetime) -> None:
    from rowlock.cli.tables import Column, block, facts, show  # noqa: PLC0415  draws

    facts(_facts(record) | {name: _when(moment, now) for name, moment in _moments(record).items()})
    block("arguments", _HIDDEN if record.args is None else _pretty(record.args))
    if record.result is not None:
        block("result", _pretty(record.result))
    if record.errors:
        columns = [
            Column("attempt", right=True),
            Column("type", least=10),
            Column("ended", least=10, rank=1),
            Column("message", least=20),
        ]
        rows = [(error.attempt, error.type, words.age(error.ended_at, now), error.message) for error in record.errors]
        show(columns, rows, title="\nerrors")
        if record.errors[-1].traceback:
            block("traceback of the last", record.errors[-1].traceback)
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
        "attempts": f"{tries(record).replace('/', ' of ')}, {words.count(record.claims, 'claim')}, "
        f"{words.count(record.crashes, 'crash', 'crashes')}",
        "progress": progress and f"{progress.share:.0%} {progress.note or ''}".rstrip(),
        "worker": record.worker,
        "key": record.key and words.line(record.key),
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
    return "" if moment is None else f"{words.instant(moment)} ({words.age(moment, now)})"


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
