"""`rowlock workflows list`: where workflows stand."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

import click

from rowlock.cli.shared import text
from rowlock.cli.shared.options import AppChoice, app_options, database_time, debug_option, open_app, usage_errors
from rowlock.cli.shared.output import EXIT_CODES_OF_READS, json_option, masked, next_page, print_json, reveal_option
from rowlock.model.filter import STATES, Filter
from rowlock.model.names import versioned
from rowlock.model.record import State
from rowlock.model.workflow.record import WorkflowRecord


@click.command("list", epilog=EXIT_CODES_OF_READS)
@click.option("--workflow", metavar="NAME", help="Only this workflow.")
@click.option("--version", type=int, metavar="N", help="Only this version of its code.")
@click.option("--state", multiple=True, type=click.Choice(STATES), help="Only these states; may be repeated.")
@click.option("--queue", metavar="NAME", help="Only this queue.")
@click.option("--key", metavar="KEY", help="Only the one with this key.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), metavar="N", default=50, show_default=True, help="Workflows a page."
)
@click.option("--before", type=click.UUID, metavar="ID", help="The page after the one that named this id.")
@reveal_option
@json_option
@app_options(required=False)
@debug_option
def list_workflows(
    choice: AppChoice,
    *,
    workflow: str | None,
    version: int | None,
    state: tuple[State, ...],
    queue: str | None,
    key: str | None,
    limit: int,
    before: UUID | None,
    reveal: bool,
    as_json: bool,
) -> None:
    """List workflows, live and ended ones, newest first: where each of them stands and what it waits for."""
    with open_app(choice) as app:
        with usage_errors():
            page = app.workflows.list(
                Filter(task=workflow, state=state or None, queue=queue, key=key),
                version=version,
                limit=limit,
                before=before,
            )
        now = database_time(app)
    records = masked(page.records, reveal=reveal)
    if as_json:
        print_json({"workflows": [record.to_dict() for record in records], "next": page.next and str(page.next)})
        return
    if records:
        _show(records, now)
    else:
        click.echo("no workflow matches", err=True)
    next_page(page.next)


def _show(records: Iterable[WorkflowRecord], now: datetime) -> None:
    from rowlock.cli.shared.tables import Column, id_width, print_table  # noqa: PLC0415  draws

    digits = id_width()
    columns = [
        Column("id", least=digits),
        Column("state", least=9),
        Column("workflow", least=14),
        Column("step", least=10, rank=1),
        Column("note", least=12, rank=2),
        Column("key", least=8, rank=3),
        Column("created", least=10, rank=4),
        Column("queue", least=7, rank=5),
    ]
    print_table(columns, (_row(record, now, digits=digits) for record in records))


def _row(record: WorkflowRecord, now: datetime, *, digits: int) -> tuple[object, ...]:
    return (
        str(record.id)[-digits:],
        record.state,
        versioned(record.workflow, record.version),
        record.current_step,
        _note(record, now),
        record.key,
        text.age(record.created_at, now),
        record.queue,
    )


def _note(record: WorkflowRecord, now: datetime) -> str:
    parts = [
        "cancelling" if record.cancelling else "",
        f"for {record.waits_for}" if record.waits_for else "",
        record.reason or "",
        f"ended {text.age(record.ended_at, now)}" if record.ended_at else "",
    ]
    return "; ".join(part for part in parts if part)
