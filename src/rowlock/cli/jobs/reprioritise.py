"""`rowlock jobs reprioritise`."""

from __future__ import annotations

import click

from rowlock.cli.orders import Order, carry_out, order_options
from rowlock.cli.output import EXIT_CODES_OF_VERBS
from rowlock.model.names import PRIORITIES


@click.command(epilog=EXIT_CODES_OF_VERBS)
@click.option(
    "--to",
    required=True,
    type=click.IntRange(PRIORITIES[0], PRIORITIES[-1]),
    metavar="PRIORITY",
    help="-4 (last) to 4 (first); 0 is the default.",
)
@order_options
def reprioritise(order: Order, *, to: int) -> None:
    """Give jobs that have not started another priority. Running ones are passed over."""
    carry_out(order, "reprioritise", lambda app, asked, **how: app.jobs.reprioritise(asked, priority=to, **how))
