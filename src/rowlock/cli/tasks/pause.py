"""`rowlock tasks pause`."""

from __future__ import annotations

import click

from rowlock.cli import pausing
from rowlock.cli.output import EXIT_CODES_OF_LOOKS
from rowlock.cli.pausing import Halt, halt_options


@click.command(epilog=EXIT_CODES_OF_LOOKS)
@halt_options(pauses=True)
def pause(halt: Halt) -> None:
    """Stop running jobs of a task, whatever their queue; other tasks of the queue go on."""
    pausing.pause(halt, "task")
