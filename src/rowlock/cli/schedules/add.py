"""`rowlock schedules add`."""

from __future__ import annotations

import click

from rowlock.app.tasks import Call
from rowlock.cli import slots, words
from rowlock.cli.asked import Asked, asked_options
from rowlock.cli.calls import call_of
from rowlock.cli.filters import usage
from rowlock.cli.masking import masked
from rowlock.cli.opened import database_time, opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES, json_option, print_json
from rowlock.model.spec import Options


@click.command(epilog=f"{EXIT_CODES}, 130 interrupted.")
@click.argument("name")
@click.argument("task")
@asked_options
@click.option("--attempts", type=click.IntRange(1), metavar="N", help="Tries of each job; else as the task says.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="For its jobs; may be repeated.")
@json_option
@app_options(required=False)
@debug_option
def add(
    choice: Choice,
    *,
    name: str,
    task: str,
    asked: Asked,
    attempts: int | None,
    tags: tuple[str, ...],
    as_json: bool,
) -> None:
    """Add a schedule NAME that makes jobs of TASK, and say when it runs first.

    \b
    rowlock schedules add nightly shop.report --cron "0 3 * * *" --tz Europe/Paris
    rowlock schedules add sync shop.sync --every 5min --jitter 30s --arg full=false

    Without --app the task is only a name, and its arguments are taken as they are. With --app the task must be known
    there, and the arguments must fit it.
    """  # noqa: D301  click knows the escaped character as: leave these lines as they are
    rule, arguments = asked.rule, asked.arguments or {}
    if rule is None:
        raise click.UsageError("when? give --cron or --every")
    with usage():
        options = Options(
            queue=asked.queue, priority=asked.priority, expires=asked.expires, attempts=attempts, tags=tags
        )
    with opened(choice) as app:
        with usage():
            call = call_of(app, task, arguments, target=choice.app)
            made = Call(call.task, call.args, call.task.spec.allowed(options))
            added = app.schedules.add(name, made, rule, **asked.policies(), by=asked.by, why=asked.why)
        now = database_time(app)
    if as_json:
        print_json({"schedule": masked(added).to_dict()})
    else:
        click.echo(f"schedule {words.line(name)} is added; it first runs at {slots.when(added.next_at, added, now)}")
