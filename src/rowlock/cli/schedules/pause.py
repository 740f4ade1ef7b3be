"""`rowlock schedules pause`."""

from __future__ import annotations

import click

from rowlock.cli import slots, words
from rowlock.cli.filters import usage
from rowlock.cli.masking import masked
from rowlock.cli.opened import opened
from rowlock.cli.output import EXIT_CODES_OF_VERBS, print_json
from rowlock.cli.pausing import Halt, halt_options


@click.command(epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "there is no such schedule"))
@halt_options(pauses=True)
def pause(halt: Halt) -> None:
    """Pass over the slots of a schedule. Jobs that it has made go on, and no deploy ends the pause.

    \b
    rowlock schedules pause nightly-report --for 2d --why "the warehouse moves"
    """  # noqa: D301  click knows the escaped character as: leave these lines as they are
    if halt.duration is not None and halt.until is not None:
        raise click.UsageError("give --for or --until, not both")
    with opened(halt.choice) as app, usage():
        paused = app.schedules.pause(halt.name, until=halt.until, duration=halt.duration, why=halt.why, by=halt.by)
    if halt.as_json:
        print_json({"schedule": masked(paused).to_dict()})
    else:
        since = paused.paused_at or paused.next_at
        click.echo(f"schedule {words.line(halt.name)} is paused {slots.ends(paused, since)}")
