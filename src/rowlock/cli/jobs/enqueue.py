"""`rowlock jobs enqueue`."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import click

from rowlock.app import Rowlock
from rowlock.cli import words
from rowlock.cli.filters import named_values, usage
from rowlock.cli.load import importing
from rowlock.cli.moments import instant, span
from rowlock.cli.opened import opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES, json_option, print_json
from rowlock.errors import InvalidArguments, UnknownTask
from rowlock.model.names import PRIORITIES
from rowlock.model.payload import encode_untyped
from rowlock.model.spec import Options
from rowlock.tasks import Call


@click.command(epilog=f"{EXIT_CODES}, 130 interrupted.")
@click.argument("task")
@click.option("--args", "whole", metavar="JSON", help="The arguments as one JSON object: '{\"user_id\": 42}'.")
@click.option(
    "--arg",
    "named",
    multiple=True,
    callback=named_values,
    metavar="NAME=JSON",
    help="One argument; a bare word is a string. May be repeated.",
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
    arguments = _arguments(whole, named)
    with usage():
        options = Options(queue=queue, priority=priority, run_at=run_at, delay=delay, key=key, tags=tags)
    with opened(choice) as app:
        with usage():
            call = _call(app, task, arguments, target=choice.app)
        job = Call(call.task, call.args, options).enqueue()
    if as_json:
        print_json({"id": str(job.id), "task": job.task, "queue": job.queue, "created": job.created})
        return
    click.echo(job.id)
    if not job.created:
        click.echo(
            f"that job was there already and holds the key {words.line(repr(key))}; nothing was enqueued", err=True
        )


def _arguments(whole: str | None, named: Mapping[str, object]) -> Mapping[str, object]:
    if whole is None:
        return named
    if named:
        raise click.UsageError("give --args or --arg, not both")
    try:
        parsed: object = json.loads(whole)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--args is no JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise click.UsageError("--args must be a JSON object of arguments by name, such as '{\"user_id\": 42}'")
    return parsed


def _call(app: Rowlock, name: str, arguments: Mapping[str, object], *, target: str | None) -> Call[Any]:
    """The call; where the task's code is at hand, with arguments such as its handler would be given."""
    if target is None:
        return app.call(name, (), arguments)
    with importing(target):
        app.load()
    task = app.tasks.get(name)
    if task is None:
        close = difflib.get_close_matches(name, app.tasks.names(), n=1)
        instead = f"did you mean {close[0]}?" if close else f"it knows {', '.join(app.tasks.names()) or 'none'}"
        raise UnknownTask(f"the app has no task {name!r}; {instead} (without --app any name is taken)")
    try:
        return task.bind(**arguments)
    except InvalidArguments:
        # Not as they are; but JSON has no dates, models and the like, and the worker would make them of this.
        with suppress(InvalidArguments):
            positional, by_name = task.arguments.decode(encode_untyped(arguments))
            return task.bind(*positional, **by_name)
        raise
