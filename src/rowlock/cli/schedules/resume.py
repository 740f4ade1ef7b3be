"""`rowlock schedules resume`."""

from __future__ import annotations

import click

from rowlock.cli import slots, words
from rowlock.cli.filters import usage
from rowlock.cli.masking import masked
from rowlock.cli.opened import database_time, opened
from rowlock.cli.output import EXIT_CODES_OF_VERBS, nothing_matched, print_json
from rowlock.cli.pausing import Halt, halt_options


@click.command(epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "it was not paused, or is not there"))
@halt_options(pauses=False)
def resume(halt: Halt) -> None:
    """Let a paused schedule go on with its next slot; those that the pause covered are not made up for."""
    with opened(halt.choice) as app, usage():
        was_paused = app.schedules.resume(halt.name, why=halt.why, by=halt.by)
        schedule = app.schedules.get(halt.name)
        now = database_time(app)
    if halt.as_json:
        print_json({"resumed": was_paused, "schedule": masked(schedule).to_dict()})
    if not was_paused:
        nothing_matched(f"schedule {words.line(halt.name)} was not paused")
    if not halt.as_json:
        click.echo(f"schedule {words.line(halt.name)} goes on at {slots.when(schedule.next_at, schedule, now)}")
