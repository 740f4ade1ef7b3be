"""`rowlock schedules edit`."""

from __future__ import annotations

import click

from rowlock.cli import slots, words
from rowlock.cli.asked import Asked, asked_options
from rowlock.cli.filters import usage
from rowlock.cli.load import importing
from rowlock.cli.masking import masked
from rowlock.cli.opened import database_time, opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_VERBS, json_option, print_json


@click.command(epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "there is no such schedule"))
@click.argument("name")
@asked_options
@click.option("--reset", is_flag=True, help="Go back to what code declares, and then change what else is given.")
@json_option
@app_options(required=False)
@debug_option
def edit(choice: Choice, *, name: str, asked: Asked, reset: bool, as_json: bool) -> None:
    """Change a schedule; what is not given stays as it is.

    \b
    rowlock schedules edit nightly --cron "30 4 * * *" --why "the backup runs at 3"
    rowlock schedules edit nightly --queue slow --jitter 10min
    rowlock schedules edit nightly --reset

    Of a schedule that code declares, the change outlasts deploys until --reset. --expires 0s takes that away. With
    --app, new arguments must fit the task.
    """  # noqa: D301  click knows the escaped character as: leave these lines as they are
    rule, arguments = asked.rule, asked.arguments
    with opened(choice) as app:
        if choice.app is not None:
            with importing(choice.app):
                app.load()
        with usage():
            edited = app.schedules.edit(
                name,
                rule=rule,
                args=arguments,
                queue=asked.queue,
                priority=asked.priority,
                expires=asked.expires,
                **asked.policies(),
                reset=reset,
                by=asked.by,
                why=asked.why,
            )
        now = database_time(app)
    if as_json:
        print_json({"schedule": masked(edited).to_dict()})
    else:
        click.echo(f"schedule {words.line(name)} next runs at {slots.when(edited.next_at, edited, now)}")
