"""`rowlock schedules`."""

from __future__ import annotations

import click

from rowlock.cli.output import EXIT_CODES_OF_VERBS
from rowlock.cli.schedules.add import add
from rowlock.cli.schedules.edit import edit
from rowlock.cli.schedules.list import list_schedules
from rowlock.cli.schedules.next import next_slots
from rowlock.cli.schedules.pause import pause
from rowlock.cli.schedules.remove import remove
from rowlock.cli.schedules.resume import resume
from rowlock.cli.schedules.run_now import run_now
from rowlock.cli.schedules.show import show


@click.group(epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "there is no such schedule"))
def schedules() -> None:
    """List, add, edit, pause, run and remove schedules."""


for command in (add, edit, list_schedules, next_slots, pause, remove, resume, run_now, show):
    schedules.add_command(command)
