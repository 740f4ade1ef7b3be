"""`rowlock queues`."""

from __future__ import annotations

import click

from rowlock.cli.output import EXIT_CODES_OF_VERBS
from rowlock.cli.queues.list import list_queues
from rowlock.cli.queues.pause import pause
from rowlock.cli.queues.resume import resume
from rowlock.cli.queues.show import show


@click.group(epilog=EXIT_CODES_OF_VERBS)
def queues() -> None:
    """Look at queues, pause and resume them."""


for command in (list_queues, pause, resume, show):
    queues.add_command(command)
