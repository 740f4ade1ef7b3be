"""`rowlock jobs cancel`."""

from __future__ import annotations

import click

from rowlock.cli.orders import Order, carry_out, order_options
from rowlock.cli.output import EXIT_CODES_OF_VERBS


@click.command(epilog=EXIT_CODES_OF_VERBS)
@order_options
def cancel(order: Order) -> None:
    """End jobs that have not started, as cancelled. Running ones are passed over."""
    carry_out(order, "cancel", lambda app, asked, **how: app.jobs.cancel(asked, **how))
