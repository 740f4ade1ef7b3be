"""`rowlock schedules next`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import click

from rowlock.cli import slots, words
from rowlock.cli.opened import database_time, opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_VERBS, json_option, print_json
from rowlock.model.schedule.schedule import Schedule


@click.command("next", epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "there is no such schedule"))
@click.argument("name")
@click.option("--count", type=click.IntRange(1, 1000), metavar="N", default=5, show_default=True, help="How many.")
@json_option
@app_options(required=False)
@debug_option
def next_slots(choice: Choice, *, name: str, count: int, as_json: bool) -> None:
    """Say when a schedule asks for its next jobs, on the clocks of its zone and in UTC."""
    with opened(choice) as app:
        schedule = app.schedules.get(name)
        coming = app.schedules.next(name, count)
        now = database_time(app)
    if as_json:
        print_json({"name": schedule.name, "slots": [slot.isoformat() for slot in coming]})
    else:
        _show(schedule, coming, now)


def _show(schedule: Schedule, coming: Sequence[datetime], now: datetime) -> None:
    from rowlock.cli.tables import Column, show  # noqa: PLC0415  draws

    if schedule.is_paused:
        click.echo(f"it is paused {slots.ends(schedule, now)}: slots before that are passed over", err=True)
    if schedule.jitter:
        click.echo(f"each job runs up to {words.span(schedule.jitter)} later, by chance", err=True)
    columns = [Column("in UTC", least=20), Column("on its clock", least=9), Column("that is", least=9)]
    show(columns, ((words.instant(slot), slots.clock(slot, schedule, now), words.age(slot, now)) for slot in coming))
