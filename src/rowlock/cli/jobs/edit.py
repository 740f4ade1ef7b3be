"""`rowlock jobs edit`."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import click

from rowlock.cli.calls import argument_options, arguments_of
from rowlock.cli.filters import usage
from rowlock.cli.ids import JOB_ID, whole_id
from rowlock.cli.load import importing
from rowlock.cli.opened import opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_VERBS, json_option, print_json


@click.command(epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "there is no such job"))
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
    choice: Choice,
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
    arguments = arguments_of(whole, named)
    with opened(choice) as app:
        job_id = whole_id(app, job_id)
        if choice.app is not None:
            with importing(choice.app):
                app.load()
        with usage():
            names = app.jobs.edit(job_id, args=arguments, by=by, why=why)
    if as_json:
        print_json({"changed": list(names)})
    else:
        click.echo(f"changed: {', '.join(names)}" if names else "these are the arguments that it has")
