"""`rowlock jobs enqueue`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import click

from rowlock.app.tasks import Call
from rowlock.cli import words
from rowlock.cli.calls import argument_options, arguments_of, call_of
from rowlock.cli.filters import usage
from rowlock.cli.moments import instant, span
from rowlock.cli.opened import opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES, json_option, print_json
from rowlock.model.names import PRIORITIES
from rowlock.model.spec import Options


@click.command(epilog=f"{EXIT_CODES}, 130 interrupted.")
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
@click.option("--key", metavar="KEY", help="Not twice: while a job with this key lives, that one is answered.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="May be repeated.")
@json_option
@app_options(required=False)
@debug_option
def enqueue(
    choice: Choice,
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
    arguments = arguments_of(whole, named)
    with usage():
        options = Options(queue=queue, priority=priority, run_at=run_at, delay=delay, key=key, tags=tags)
    with opened(choice) as app:
        with usage():
            call = call_of(app, task, arguments, target=choice.app)
        job = Call(call.task, call.args, call.task.spec.allowed(options)).enqueue()
    if as_json:
        print_json({"id": str(job.id), "task": job.task, "queue": job.queue, "created": job.created})
        return
    click.echo(job.id)
    if not job.created:
        click.echo(
            f"that job was there already and holds the key {words.line(repr(key))}; nothing was enqueued", err=True
        )
