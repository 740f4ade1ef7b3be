"""`rowlock jobs retry`."""

from __future__ import annotations

import click

from rowlock.cli.orders import Order, carry_out, order_options
from rowlock.cli.output import EXIT_CODES_OF_VERBS


@click.command(epilog=EXIT_CODES_OF_VERBS)
@order_options
def retry(order: Order) -> None:
    """Run ended jobs again.

    These are failed ones; cancelled and succeeded ones only if --state says so. They keep their ids and errors, are
    ready at once (a job that was cancelled before its time, at that time), and have all their attempts again. A job
    whose key is held by another one is passed over.
    """
    carry_out(order, "retry", lambda app, asked, **how: app.jobs.retry(asked, **how))
