"""`rowlock jobs delete`."""

from __future__ import annotations

import click

from rowlock.cli.orders import Order, carry_out, order_options
from rowlock.cli.output import EXIT_CODES_OF_VERBS


@click.command(epilog=EXIT_CODES_OF_VERBS)
@order_options
def delete(order: Order) -> None:
    """Remove jobs for good. Running ones are passed over.

    So are workflows that have begun, because there may be something to undo, and children, because their workflows
    wait for them: cancel those first.
    """
    carry_out(order, "delete", lambda app, asked, **how: app.jobs.delete(asked, **how))
