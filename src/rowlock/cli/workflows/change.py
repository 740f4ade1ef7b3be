"""`rowlock workflows`: cancel, terminate, retry, fork, signal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from uuid import UUID

import click

from rowlock.app.app import Rowlock
from rowlock.cli.shared import text
from rowlock.cli.shared.ids import JOB_ID, is_part, whole_id
from rowlock.cli.shared.import_app import load_tasks
from rowlock.cli.shared.options import AppChoice, app_options, debug_option, open_app, usage_errors
from rowlock.cli.shared.output import (
    exit_codes,
    json_option,
    nothing_matched,
    print_json,
)
from rowlock.cli.shared.task_arguments import argument_options, parse_arguments
from rowlock.errors import JobNotFound, SignalRefused
from rowlock.model.filter import Filter
from rowlock.model.workflow.timeline import Timeline


@click.command(epilog=exit_codes("there is no such workflow, or it is too late"))
@click.argument("job_id", metavar="ID", type=JOB_ID)
@click.option("--why", metavar="TEXT", help="A reason, for its event.")
@click.option("--by", metavar="NAME", help="Who does it, for its event; else USER@HOST.")
@json_option
@app_options(required=False)
@debug_option
def cancel(choice: AppChoice, *, job_id: UUID | str, why: str | None, by: str | None, as_json: bool) -> None:
    """Cancel a workflow. A worker undoes what it has done, the latest first; then it ends as cancelled.

    Children that have not ended are cancelled with it. To cancel many, use rowlock jobs cancel.
    """
    with open_app(choice) as app:
        job_id = whole_id(app, job_id)
        app.workflows.show(job_id)  # refuses what is not a workflow
        job = app.jobs.get(job_id)
        cancelled = job.cancel(by=by, why=why)
        record = job.record()
    if as_json:
        print_json({"id": str(job_id), "cancelled": cancelled, "state": record.state})
    if not cancelled:
        nothing_matched(f"too late: workflow {job_id} has ended as {record.state}")
    if not as_json:
        ended = "has ended as cancelled" if record.ended else "is being cancelled: a worker undoes what it has done"
        click.echo(f"workflow {job_id} {ended}")


@click.command(epilog=exit_codes("there is no such workflow, or it is too late"))
@click.argument("job_id", metavar="ID", type=JOB_ID)
@click.option("--why", metavar="TEXT", help="A reason, for its event.")
@click.option("--by", metavar="NAME", help="Who does it, for its event; else USER@HOST.")
@json_option
@app_options(required=False)
@debug_option
def terminate(choice: AppChoice, *, job_id: UUID | str, why: str | None, by: str | None, as_json: bool) -> None:
    """End a workflow as cancelled at once, without undo: what it has done stands.

    For one whose code is gone, which no worker can undo; where a worker has the code, cancel it. Its key is free, and
    its children are cancelled.
    """
    with open_app(choice) as app:
        job_id = whole_id(app, job_id)
        terminated = app.workflows.terminate(job_id, by=by, why=why)
        state = "cancelled" if terminated else app.jobs.get(job_id).record().state
    if as_json:
        print_json({"id": str(job_id), "terminated": terminated, "state": state})
    if not terminated:
        nothing_matched(f"too late: workflow {job_id} has ended as {state}")
    if not as_json:
        click.echo(f"workflow {job_id} has ended as cancelled; nothing was undone")


@click.command(epilog=exit_codes("there is no such workflow, or none to retry"))
@click.argument("job_id", metavar="ID", type=JOB_ID)
@click.option("--why", metavar="TEXT", help="A reason, for its event.")
@click.option("--by", metavar="NAME", help="Who does it, for its event; else USER@HOST.")
@json_option
@app_options(required=False)
@debug_option
def retry(choice: AppChoice, *, job_id: UUID | str, why: str | None, by: str | None, as_json: bool) -> None:
    """Retry a failed workflow from the step that has failed.

    It keeps its id, its key and what it did before. If something was undone, it starts from the beginning. To retry
    many, or a cancelled one, use rowlock jobs retry.
    """
    with open_app(choice) as app:
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


@click.command(epilog=exit_codes("there is no such workflow"))
@click.argument("job_id", metavar="ID", type=JOB_ID)
@click.option(
    "--from-step", required=True, metavar="KEY", help="The step to run again, with all after it; `show` names them."
)
@argument_options(
    whole='Other arguments, as one JSON object: \'{"card": "new"}\'.',
    one="Another argument; a bare word is a string. May be repeated.",
)
@click.option("--version", type=int, metavar="N", help="Another version of its code.")
@click.option("--why", metavar="TEXT", help="A reason, for the events.")
@click.option("--by", metavar="NAME", help="Who does it, for the events; else USER@HOST.")
@json_option
@app_options(required=False)
@debug_option
def fork(
    choice: AppChoice,
    *,
    job_id: UUID | str,
    from_step: str,
    whole: str | None,
    named: Mapping[str, object],
    version: int | None,
    why: str | None,
    by: str | None,
    as_json: bool,
) -> None:
    """Continue from a step of a workflow in a new job, and print its id.

    The new job remembers what was done before that step, by whichever code and with whichever arguments. The workflow
    itself is left as it is. If it was undone, the new job starts over, for nothing it did stands any more. Arguments
    that are not given stay as they were; with --app they must fit its code.
    """
    arguments = parse_arguments(whole, named)
    with open_app(choice) as app:
        job_id = whole_id(app, job_id)
        load_tasks(app, choice.app)
        with usage_errors():
            job = app.workflows.fork(
                job_id, from_step=from_step, args=arguments or None, version=version, by=by, why=why
            )
    if as_json:
        print_json({"id": str(job.id), "task": job.task, "queue": job.queue, "from": str(job_id), "step": from_step})
    else:
        click.echo(job.id)


@click.command(epilog=exit_codes("there is no such workflow, or it takes no more signals"))
@click.argument("target", metavar="ID|KEY")
@click.argument("name")
@click.option("--payload", metavar="JSON", help='What it carries: \'{"by": "ada"}\'.')
@click.option("--key", metavar="KEY", help="Not twice: a second signal with this key is ignored.")
@json_option
@app_options(required=False)
@debug_option
def signal(choice: AppChoice, *, target: str, name: str, payload: str | None, key: str | None, as_json: bool) -> None:
    """Send a workflow the signal NAME, and wake it if it waits for that.

    The workflow is named by its id, by its key, or, where that is no key, by 8 or more digits of the beginning or end
    of its id. The signal is stored, and taken by one wait at most, also by one that begins later.
    """
    carried = _parse_payload(payload)
    with open_app(choice) as app, usage_errors():
        try:
            target, sent = _send(app, target, name, carried, key=key)
        except SignalRefused as refused:
            nothing_matched(text.line(str(refused)))
    if as_json:
        print_json({"target": target, "signal": name, "key": key, "sent": sent})
    elif sent:
        click.echo(f"signal {text.line(name)} is stored for {text.line(target)}")
    else:
        click.echo(f"a signal with the key {text.line(repr(key))} was sent before; nothing was stored")


def _send(app: Rowlock, target: str, name: str, payload: object, *, key: str | None) -> tuple[str, bool]:
    """The workflow that was meant, and whether the signal is stored. Keys come first: some look like parts of ids."""
    try:
        return target, app.signal(target, name, payload, key=key)
    except JobNotFound:
        found = _find_by_part(app, target)
        if found is None:
            raise
    return str(found), app.signal(found, name, payload, key=key)


def _find_by_part(app: Rowlock, target: str) -> UUID | None:
    with suppress(JobNotFound):
        return whole_id(app, JOB_ID.convert(target, None, None)) if is_part(target) else None
    return None


def _parse_payload(payload: str | None) -> object:
    if payload is None:
        return None
    try:
        return json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--payload is no JSON: {error}; a text is written '\"so\"'") from error
