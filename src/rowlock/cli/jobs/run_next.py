"""`rowlock jobs run-next`."""

from __future__ import annotations

import click

from rowlock.cli.orders import Order, carry_out, order_options
from rowlock.cli.output import EXIT_CODES_OF_VERBS


@click.command("run-next", epilog=EXIT_CODES_OF_VERBS)
@order_options
def run_next(order: Order) -> None:
    """Let jobs run before all others of their queue. Delayed ones run at once, too."""
    carry_out(order, "run_next", lambda app, asked, **how: app.jobs.run_next(asked, **how))
