"""`rowlock schedules list`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import click

from rowlock.cli import slots, words
from rowlock.cli.masking import masked, reveal_option
from rowlock.cli.opened import database_time, opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_LOOKS, json_option, print_json
from rowlock.model.names import versioned
from rowlock.model.schedule.schedule import Schedule


@click.command("list", epilog=EXIT_CODES_OF_LOOKS)
@reveal_option
@json_option
@app_options(required=False)
@debug_option
def list_schedules(choice: Choice, *, reveal: bool, as_json: bool) -> None:
    """List schedules: their rules, when they run next, and which are paused, edited or orphans."""
    with opened(choice) as app:
        found = masked(app.schedules.list(), reveal=reveal)
        now = database_time(app)
    if as_json:
        print_json({"schedules": [schedule.to_dict() for schedule in found]})
    elif found:
        _show(found, now)
    else:
        click.echo("there is no schedule: declare one with @app.task.every(…), or add one here", err=True)


def _show(found: Iterable[Schedule], now: datetime) -> None:
    from rowlock.cli.tables import Column, show  # noqa: PLC0415  draws

    columns = [
        Column("schedule", least=32),
        Column("rule", least=16),
        Column("zone", least=6, rank=3),
        Column("task", least=12, rank=2),
        Column("next", least=9),
        Column("on its clock", least=9, rank=4),
        Column("in UTC", least=20, rank=5),
        Column("last", least=8, rank=6),
        Column("state", least=12),
    ]
    show(columns, (_row(schedule, now) for schedule in found))


def _row(schedule: Schedule, now: datetime) -> tuple[str, ...]:
    return (
        schedule.name,
        slots.rule(schedule),
        slots.zone(schedule),
        versioned(schedule.task, schedule.version),
        words.age(schedule.next_at, now),
        slots.clock(schedule.next_at, schedule, now),
        words.instant(schedule.next_at),
        words.age(schedule.last_at, now),
        slots.state(schedule, now),
    )
