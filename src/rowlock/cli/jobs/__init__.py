"""`rowlock jobs`: the commands about jobs."""

from __future__ import annotations

import click

from rowlock.cli.jobs.change import cancel, delete, move, reprioritise, retry, run_next
from rowlock.cli.jobs.enqueue import edit, enqueue
from rowlock.cli.jobs.list import failures, list_jobs
from rowlock.cli.jobs.show import events, show
from rowlock.cli.shared.output import EXIT_CODES_OF_CHANGES


@click.group(epilog=EXIT_CODES_OF_CHANGES)
def jobs() -> None:
    """List, count, show, enqueue, retry, cancel, delete, move jobs."""


for command in (cancel, delete, edit, enqueue, events, failures, list_jobs, move, reprioritise, retry, run_next, show):
    jobs.add_command(command)
