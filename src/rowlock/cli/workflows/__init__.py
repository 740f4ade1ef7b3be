"""`rowlock workflows`: the commands about workflows."""

from __future__ import annotations

import click

from rowlock.cli.shared.output import exit_codes
from rowlock.cli.workflows.change import cancel, fork, retry, signal, terminate
from rowlock.cli.workflows.check import check
from rowlock.cli.workflows.list import list_workflows
from rowlock.cli.workflows.show import show


@click.group(epilog=exit_codes("there is no such workflow"))
def workflows() -> None:
    """List, show, signal, cancel, terminate, retry, fork and check workflows."""


for command in (cancel, check, fork, list_workflows, retry, show, signal, terminate):
    workflows.add_command(command)
