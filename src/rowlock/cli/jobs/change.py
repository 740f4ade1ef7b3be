"""`rowlock jobs`: retry, cancel, delete, move, reprioritise and run jobs next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import click

from rowlock.app.app import Rowlock
from rowlock.app.jobs import Done
from rowlock.cli.jobs.bulk import BulkOptions, bulk_options, run_bulk
from rowlock.cli.shared.output import EXIT_CODES_OF_CHANGES, exit_codes, nothing_matched
from rowlock.model.filter import Filter
from rowlock.model.names import PRIORITIES


@click.command(epilog=EXIT_CODES_OF_CHANGES)
@bulk_options
def retry(typed: BulkOptions) -> None:
    """Run ended jobs again.

    These are failed ones; cancelled and succeeded ones only if --state says so. They keep their ids and errors, are
    ready at once (a job that was cancelled before its time, at that time), and have all their attempts again. A job
    whose key is held by another one is passed over.
    """
    run_bulk(typed, "retry", lambda app, job_filter, **how: app.jobs.retry(job_filter, **how))


@click.command(epilog=exit_codes("nothing matched, or it is too late"))
@bulk_options
def cancel(typed: BulkOptions) -> None:
    """Cancel jobs that have not ended. They never run, retry or succeed again.

    Jobs that have not started end at once; running ones are told to stop, and end as cancelled whatever they come to.
    Workflows that have begun, and children, end when a worker has undone what they did.
    For one job by its id it prints whether it was cancelled, or whether that came too late.
    """
    if len(typed.filters.ids) == 1 and replace(typed.filters, ids=()).is_everything:
        run_bulk(typed, "cancel", _cancel_one)
    else:
        run_bulk(typed, "cancel", lambda app, job_filter, **how: app.jobs.cancel(job_filter, **how))


def _cancel_one(
    app: Rowlock,
    job_filter: Filter,
    *,
    by: str | None,
    why: str | None,
    before: UUID | None,  # noqa: ARG001  one job is no list to go on with
    track: Callable[[Done], object],  # noqa: ARG001  nor to follow
) -> Done:
    [job_id] = job_filter.ids or ()
    job = app.jobs.get(job_id)
    if not job.cancel(by=by, why=why):
        nothing_matched(f"too late: job {job_id} has ended as {job.record().state}")
    record = job.record()
    if record.cancel_at is not None and record.state == "running":
        click.echo("it is running: its handler is told to stop", err=True)
    elif record.cancel_at is not None:
        click.echo("it has begun, or has a parent: it ends when a worker has undone what it did", err=True)
    return Done("cancel", changed=1)


@click.command(epilog=EXIT_CODES_OF_CHANGES)
@bulk_options
def delete(typed: BulkOptions) -> None:
    """Remove jobs for good. Running ones are passed over.

    So are workflows that have begun, because there may be something to undo, and children, because their workflows
    wait for them: cancel those first.
    """
    run_bulk(typed, "delete", lambda app, job_filter, **how: app.jobs.delete(job_filter, **how))


@click.command(epilog=EXIT_CODES_OF_CHANGES)
@click.option("--to", required=True, metavar="QUEUE", help="The queue to move them to.")
@bulk_options
def move(typed: BulkOptions, *, to: str) -> None:
    """Move jobs that have not started to another queue. Running ones are passed over."""
    run_bulk(typed, "move", lambda app, job_filter, **how: app.jobs.move(job_filter, queue=to, **how))


@click.command(epilog=EXIT_CODES_OF_CHANGES)
@click.option(
    "--to",
    required=True,
    type=click.IntRange(PRIORITIES[0], PRIORITIES[-1]),
    metavar="PRIORITY",
    help="-4 (last) to 4 (first); 0 is the default.",
)
@bulk_options
def reprioritise(typed: BulkOptions, *, to: int) -> None:
    """Give jobs that have not started another priority. Running ones are passed over."""
    run_bulk(
        typed, "reprioritise", lambda app, job_filter, **how: app.jobs.reprioritise(job_filter, priority=to, **how)
    )


@click.command("run-next", epilog=EXIT_CODES_OF_CHANGES)
@bulk_options
def run_next(typed: BulkOptions) -> None:
    """Let jobs run before all others of their queue. Delayed ones run at once, too."""
    run_bulk(typed, "run_next", lambda app, job_filter, **how: app.jobs.run_next(job_filter, **how))
