"""`rowlock workflows cancel`."""

from __future__ import annotations

from uuid import UUID

import click

from rowlock.cli.ids import JOB_ID, whole_id
from rowlock.cli.opened import opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_VERBS, json_option, nothing_matched, print_json


@click.command(epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "there is no such workflow, or it is too late"))
@click.argument("job_id", metavar="ID", type=JOB_ID)
@click.option("--why", metavar="TEXT", help="A reason, for its event.")
@click.option("--by", metavar="NAME", help="Who does it, for its event; else USER@HOST.")
@json_option
@app_options(required=False)
@debug_option
def cancel(choice: Choice, *, job_id: UUID | str, why: str | None, by: str | None, as_json: bool) -> None:
    """Cancel a workflow. A worker undoes what it has done, the latest first; then it ends as cancelled.

    Children that have not ended are cancelled with it. To cancel many, use rowlock jobs cancel.
    """
    with opened(choice) as app:
        job_id = whole_id(app, job_id)
        app.workflows.show(job_id)  # refuses what is no workflow
        job = app.get(job_id)
        cancelled = job.cancel(by=by, why=why)
        record = job.record()
    if as_json:
        print_json({"id": str(job_id), "cancelled": cancelled, "state": record.state})
    if not cancelled:
        nothing_matched(f"too late: workflow {job_id} has ended as {record.state}")
    if not as_json:
        ended = "has ended as cancelled" if record.ended else "is being cancelled: a worker undoes what it has done"
        click.echo(f"workflow {job_id} {ended}")
