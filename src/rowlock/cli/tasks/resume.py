"""`rowlock tasks resume`."""

from __future__ import annotations

import click

from rowlock.cli import pausing
from rowlock.cli.output import EXIT_CODES_OF_VERBS
from rowlock.cli.pausing import Halt, halt_options


@click.command(epilog=EXIT_CODES_OF_VERBS)
@halt_options(pauses=False)
def resume(halt: Halt) -> None:
    """Let a paused task go on."""
    pausing.resume(halt, "task")
