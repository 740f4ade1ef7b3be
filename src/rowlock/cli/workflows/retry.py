"""`rowlock workflows retry`."""

from __future__ import annotations

from uuid import UUID

import click

from rowlock.cli.ids import JOB_ID, whole_id
from rowlock.cli.opened import opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_VERBS, json_option, nothing_matched, print_json
from rowlock.model.filter import Filter
from rowlock.model.workflow.timeline import Timeline


@click.command(epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "there is no such workflow, or none to retry"))
@click.argument("job_id", metavar="ID", type=JOB_ID)
@click.option("--why", metavar="TEXT", help="A reason, for its event.")
@click.option("--by", metavar="NAME", help="Who does it, for its event; else USER@HOST.")
@json_option
@app_options(required=False)
@debug_option
def retry(choice: Choice, *, job_id: UUID | str, why: str | None, by: str | None, as_json: bool) -> None:
    """Let a failed workflow go on from the step that has failed.

    It keeps its id, its key and what it did before. If something was undone, it starts from the beginning. To retry
    many, or a cancelled one, use rowlock jobs retry.
    """
    with opened(choice) as app:
        job_id = whole_id(app, job_id)
        before = app.workflows.show(job_id)
        done = app.jobs.retry(Filter(ids=[job_id]), by=by, why=why)
        after = app.workflows.show(job_id)
    kept = [step.key for step in after if step.kind != "start"]
    if as_json:
        print_json({"id": str(job_id), "retried": bool(done.changed), "state": after.job.state, "steps": kept})
    if not done.changed:
        nothing_matched(_why_not(before))
    if not as_json:
        whence = f"goes on after {kept[-1]}" if kept else "starts from the beginning"
        click.echo(f"workflow {job_id} {whence}")


def _why_not(before: Timeline) -> str:
    job = before.job
    if not job.ended:
        return f"workflow {job.id} has not ended; it is {job.state}"
    if job.state == "failed":
        return f"workflow {job.id} was not retried: another job holds its key {job.key!r}"
    was = "was" if job.state == "cancelled" else "has"
    return f"workflow {job.id} {was} {job.state}; to run it again, say: rowlock jobs retry {job.id} --state {job.state}"
