"""`rowlock jobs move`."""

from __future__ import annotations

import click

from rowlock.cli.orders import Order, carry_out, order_options
from rowlock.cli.output import EXIT_CODES_OF_VERBS


@click.command(epilog=EXIT_CODES_OF_VERBS)
@click.option("--to", required=True, metavar="QUEUE", help="The queue to move them to.")
@order_options
def move(order: Order, *, to: str) -> None:
    """Move jobs that have not started to another queue. Running ones are passed over."""
    carry_out(order, "move", lambda app, asked, **how: app.jobs.move(asked, queue=to, **how))
