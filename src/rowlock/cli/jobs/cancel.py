"""`rowlock jobs cancel`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import click

from rowlock.app.app import Rowlock
from rowlock.app.jobs import Done
from rowlock.cli.orders import Order, carry_out, order_options
from rowlock.cli.output import EXIT_CODES_OF_VERBS, nothing_matched
from rowlock.model.filter import Filter


@click.command(epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "nothing matched, or it is too late"))
@order_options
def cancel(order: Order) -> None:
    """Cancel jobs that have not ended. They never run, retry or succeed again.

    Jobs that have not started end at once; running ones are told to stop, and end as cancelled whatever they come to.
    Workflows that have begun, and children, end when a worker has undone what they did.
    Of one job by its id you are told whether it was cancelled, or whether that came too late.
    """
    if len(order.wanted.ids) == 1 and replace(order.wanted, ids=()).is_everything:
        carry_out(order, "cancel", _one)
    else:
        carry_out(order, "cancel", lambda app, asked, **how: app.jobs.cancel(asked, **how))


def _one(
    app: Rowlock,
    asked: Filter,
    *,
    by: str | None,
    why: str | None,
    before: UUID | None,  # noqa: ARG001  one job is no list to go on with
    track: Callable[[Done], object],  # noqa: ARG001  nor to follow
) -> Done:
    [job_id] = asked.ids or ()
    job = app.get(job_id)
    if not job.cancel(by=by, why=why):
        nothing_matched(f"too late: job {job_id} has ended as {job.record().state}")
    record = job.record()
    if record.cancel_at is not None and record.state == "running":
        click.echo("it is running: its handler is told to stop", err=True)
    elif record.cancel_at is not None:
        click.echo("it has begun, or has a parent to tell: it ends when a worker has undone what it did", err=True)
    return Done("cancel", changed=1)
