"""`rowlock workflows`."""

from __future__ import annotations

import click

from rowlock.cli.output import EXIT_CODES_OF_VERBS
from rowlock.cli.workflows.cancel import cancel
from rowlock.cli.workflows.check import check
from rowlock.cli.workflows.fork import fork
from rowlock.cli.workflows.list import list_workflows
from rowlock.cli.workflows.retry import retry
from rowlock.cli.workflows.show import show
from rowlock.cli.workflows.signal import signal
from rowlock.cli.workflows.terminate import terminate


@click.group(epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "there is no such workflow"))
def workflows() -> None:
    """List, show, signal, cancel, terminate, retry, fork and check workflows."""


for command in (cancel, check, fork, list_workflows, retry, show, signal, terminate):
    workflows.add_command(command)
