"""`rowlock schedules run-now`."""

from __future__ import annotations

import click

from rowlock.cli.filters import usage
from rowlock.cli.opened import opened
from rowlock.cli.output import EXIT_CODES_OF_VERBS, print_json
from rowlock.cli.pausing import Halt, halt_options


@click.command("run-now", epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "there is no such schedule"))
@halt_options(pauses=False)
def run_now(halt: Halt) -> None:
    """Make a job of a schedule now, beside its slots, and print its id. It may be paused."""
    with opened(halt.choice) as app, usage():
        job = app.schedules.run_now(halt.name, why=halt.why, by=halt.by)
    if halt.as_json:
        print_json({"id": str(job.id), "task": job.task, "queue": job.queue})
    else:
        click.echo(job.id)
