"""`rowlock workflows terminate`."""

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
def terminate(choice: Choice, *, job_id: UUID | str, why: str | None, by: str | None, as_json: bool) -> None:
    """End a workflow as cancelled at once, without undo: what it has done stands.

    For one whose code is gone, which no worker can undo; where a worker has the code, cancel it. Its key is free, and
    its children are cancelled.
    """
    with opened(choice) as app:
        job_id = whole_id(app, job_id)
        terminated = app.workflows.terminate(job_id, by=by, why=why)
        state = "cancelled" if terminated else app.get(job_id).record().state
    if as_json:
        print_json({"id": str(job_id), "terminated": terminated, "state": state})
    if not terminated:
        nothing_matched(f"too late: workflow {job_id} has ended as {state}")
    if not as_json:
        click.echo(f"workflow {job_id} has ended as cancelled; nothing was undone")
