"""`rowlock schedules`: the commands about schedules."""

from __future__ import annotations

import click

from rowlock.cli.schedules.change import pause, remove, resume, run_now
from rowlock.cli.schedules.edit import add, edit
from rowlock.cli.schedules.show import list_schedules, next_slots, show
from rowlock.cli.shared.output import exit_codes


@click.group(epilog=exit_codes("there is no such schedule"))
def schedules() -> None:
    """List, add, edit, pause, run and remove schedules."""


for command in (add, edit, list_schedules, next_slots, pause, remove, resume, run_now, show):
    schedules.add_command(command)
