"""`rowlock workflows fork`."""

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


@click.command(epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "there is no such workflow"))
@click.argument("job_id", metavar="ID", type=JOB_ID)
@click.option(
    "--from-step", required=True, metavar="KEY", help="The step to run anew, with all after it; show names them."
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
    choice: Choice,
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
    """Go on from a step of a workflow in a new job, and print its id.

    The new job remembers what was done before that step, by whichever code and with whichever arguments. The workflow
    itself is left as it is. If it was undone, the new job begins anew, for nothing it did stands any more. Arguments
    that are not given stay as they were; with --app they must fit its code.
    """
    arguments = arguments_of(whole, named)
    with opened(choice) as app:
        job_id = whole_id(app, job_id)
        if choice.app is not None:
            with importing(choice.app):
                app.load()
        with usage():
            job = app.workflows.fork(
                job_id, from_step=from_step, args=arguments or None, version=version, by=by, why=why
            )
    if as_json:
        print_json({"id": str(job.id), "task": job.task, "queue": job.queue, "from": str(job_id), "step": from_step})
    else:
        click.echo(job.id)
