"""`rowlock schedules`."""

from __future__ import annotations

import click

from rowlock.cli.schedules.change import pause, remove, resume, run_now
from rowlock.cli.schedules.edit import add, edit
from rowlock.cli.schedules.show import list_schedules, next_slots, show
from rowlock.cli.shared.output import EXIT_CODES_OF_VERBS


@click.group(epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "there is no such schedule"))
def schedules() -> None:
    """List, add, edit, pause, run and remove schedules."""


for command in (add, edit, list_schedules, next_slots, pause, remove, resume, run_now, show):
    schedules.add_command(command)
