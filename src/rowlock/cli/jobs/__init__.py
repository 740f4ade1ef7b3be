"""`rowlock jobs`."""

from __future__ import annotations

import click

from rowlock.cli.jobs.cancel import cancel
from rowlock.cli.jobs.delete import delete
from rowlock.cli.jobs.edit import edit
from rowlock.cli.jobs.enqueue import enqueue
from rowlock.cli.jobs.events import events
from rowlock.cli.jobs.failures import failures
from rowlock.cli.jobs.list import list_jobs
from rowlock.cli.jobs.move import move
from rowlock.cli.jobs.reprioritise import reprioritise
from rowlock.cli.jobs.retry import retry
from rowlock.cli.jobs.run_next import run_next
from rowlock.cli.jobs.show import show
from rowlock.cli.output import EXIT_CODES_OF_VERBS


@click.group(epilog=EXIT_CODES_OF_VERBS)
def jobs() -> None:
    """List, count, show, enqueue, retry, cancel, delete, move jobs."""


for command in (cancel, delete, edit, enqueue, events, failures, list_jobs, move, reprioritise, retry, run_next, show):
    jobs.add_command(command)
