"""`rowlock schedules remove`."""

from __future__ import annotations

import click

from rowlock.cli import words
from rowlock.cli.filters import usage
from rowlock.cli.masking import masked
from rowlock.cli.opened import opened
from rowlock.cli.output import EXIT_CODES_OF_VERBS, print_json
from rowlock.cli.pausing import Halt, halt_options


@click.command(epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "there is no such schedule"))
@halt_options(pauses=False)
def remove(halt: Halt) -> None:
    """Remove a schedule; the jobs it has made live on.

    Refused while live workers declare it, for they would bring it back: pause it, or take it out of the code first.
    """
    with opened(halt.choice) as app, usage():
        gone = app.schedules.remove(halt.name, why=halt.why, by=halt.by)
    if halt.as_json:
        print_json({"removed": masked(gone).to_dict()})
        return
    click.echo(f"schedule {words.line(halt.name)} is removed")
    if gone.is_declared:
        click.echo("code has declared it: a worker that starts with such code brings it back", err=True)
