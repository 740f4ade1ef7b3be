"""`rowlock jobs`: enqueue a job, edit the arguments of one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

import click

from rowlock.app.tasks import Call
from rowlock.cli.shared import text
from rowlock.cli.shared.ids import JOB_ID, whole_id
from rowlock.cli.shared.import_app import load_tasks
from rowlock.cli.shared.options import AppChoice, app_options, debug_option, open_app, usage_errors
from rowlock.cli.shared.output import (
    EXIT_CODES_OF_READS,
    exit_codes,
    json_option,
    print_json,
)
from rowlock.cli.shared.task_arguments import argument_options, make_call, parse_arguments
from rowlock.cli.shared.times import instant, span
from rowlock.model.names import PRIORITIES
from rowlock.model.spec import Options


@click.command(epilog=EXIT_CODES_OF_READS)
@click.argument("task")
@argument_options(
    whole="The arguments as one JSON object: '{\"user_id\": 42}'.",
    one="One argument; a bare word is a string. May be repeated.",
)
@click.option("--queue", metavar="NAME", help="The queue; else the task's, or default without --app.")
@click.option(
    "--priority", type=click.IntRange(PRIORITIES[0], PRIORITIES[-1]), metavar="N", help="-4 (last) to 4 (first)."
)
@click.option("--delay", type=span, metavar="SPAN", help="Run it after 90s, 15min, 2h, 3d.")
@click.option("--run-at", type=instant, metavar="WHEN", help="Run it at 2026-03-01T08:00Z.")
@click.option("--key", metavar="KEY", help="Not twice: while a job with this key lives, the same job is returned.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="May be repeated.")
@json_option
@app_options(required=False)
@debug_option
def enqueue(
    choice: AppChoice,
    *,
    task: str,
    whole: str | None,
    named: Mapping[str, object],
    queue: str | None,
    priority: int | None,
    delay: timedelta | None,
    run_at: datetime | None,
    key: str | None,
    tags: tuple[str, ...],
    as_json: bool,
) -> None:
    """Enqueue a job of TASK, and print its id.

    Without --app the task is only a name, and its arguments are taken as they are. With --app the task must be known
    there, and the arguments must fit it.
    """
    arguments = parse_arguments(whole, named)
    with usage_errors():
        options = Options(queue=queue, priority=priority, run_at=run_at, delay=delay, key=key, tags=tags)
    with open_app(choice) as app:
        with usage_errors():
            call = make_call(app, task, arguments, target=choice.app)
        job = Call(call.task, call.args, call.task.spec.allowed(options)).enqueue()
    if as_json:
        print_json({"id": str(job.id), "task": job.task, "queue": job.queue, "created": job.created})
        return
    click.echo(job.id)
    if not job.created:
        click.echo(
            f"that job was there already and holds the key {text.line(repr(key))}; nothing was enqueued", err=True
        )


@click.command(epilog=exit_codes("there is no such job"))
@click.argument("job_id", metavar="ID", type=JOB_ID)
@argument_options(
    whole="The arguments as one JSON object: '{\"user_id\": 42}'.",
    one="One argument; a bare word is a string. May be repeated; those that are not named are gone.",
)
@click.option("--why", metavar="TEXT", help="A reason, for the event of this job.")
@click.option("--by", metavar="NAME", help="Who does it, for the event; else USER@HOST.")
@json_option
@app_options(required=False)
@debug_option
def edit(
    choice: AppChoice,
    *,
    job_id: UUID | str,
    whole: str | None,
    named: Mapping[str, object],
    why: str | None,
    by: str | None,
    as_json: bool,
) -> None:
    """Give a job that has not started other arguments. With --app, they must fit the task."""
    if whole is None and not named:
        raise click.UsageError("say which arguments, all of them: --args '{…}', or --arg NAME=JSON for each")
    arguments = parse_arguments(whole, named)
    with open_app(choice) as app:
        job_id = whole_id(app, job_id)
        load_tasks(app, choice.app)
        with usage_errors():
            names = app.jobs.edit(job_id, args=arguments, by=by, why=why)
    if as_json:
        print_json({"changed": list(names)})
    else:
        click.echo(f"changed: {', '.join(names)}" if names else "these are the arguments that it has")
