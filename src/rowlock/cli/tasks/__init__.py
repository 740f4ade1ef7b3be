"""`rowlock tasks`."""

from __future__ import annotations

import click

from rowlock.cli.output import EXIT_CODES_OF_VERBS
from rowlock.cli.tasks.list import list_tasks
from rowlock.cli.tasks.pause import pause
from rowlock.cli.tasks.resume import resume


@click.group(epilog=EXIT_CODES_OF_VERBS)
def tasks() -> None:
    """Look at tasks, pause and resume them."""


for command in (list_tasks, pause, resume):
    tasks.add_command(command)
