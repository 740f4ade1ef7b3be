"""`rowlock workflows check`: replay recorded workflows against the code."""

from __future__ import annotations

from typing import Final

import click

from rowlock.cli.shared import text
from rowlock.cli.shared.options import AppChoice, app_options, debug_option, open_app, usage_errors
from rowlock.cli.shared.output import EXIT_CODES, json_option, print_json
from rowlock.model.formatting import count
from rowlock.model.names import versioned
from rowlock.model.workflow.record import CheckedWorkflow, WorkflowCheck

NO_CODE: Final = 4
DIFFERS: Final = 5
_EXIT_CODES = f"{EXIT_CODES}, {NO_CODE} the code of some is not there, {DIFFERS} some differ, 130 interrupted."


@click.command(epilog=_EXIT_CODES)
@click.option("--workflow", metavar="NAME", help="Only this workflow.")
@click.option("--ended", is_flag=True, help="Those that have ended, too, as far as history keeps them.")
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", default=1000, show_default=True, help="At most so many, the newest."
)
@json_option
@app_options(required=True)
@debug_option
def check(choice: AppChoice, *, workflow: str | None, ended: bool, limit: int, as_json: bool) -> None:
    """Replay the records of workflows against the code of --app: report which of them could not go on with it.

    Nothing is written, and no step is called. For CI, before a deploy.
    """
    with open_app(choice) as app, usage_errors():
        checked = app.workflows.check(workflow=workflow, ended=ended, limit=limit)
    if as_json:
        print_json(checked.to_dict())
    else:
        _show(checked)
    if checked.having("differs"):
        raise click.exceptions.Exit(DIFFERS)
    if checked.having("no code"):
        raise click.exceptions.Exit(NO_CODE)


def _show(checked: WorkflowCheck) -> None:
    """What is wrong, then how many of each."""
    from rich.text import Text  # noqa: PLC0415  draws

    from rowlock.cli.shared.tables import console  # noqa: PLC0415  draws

    out = console()
    for one in checked.workflows:
        if one.verdict != "fits":
            out.print(Text(_heading(one), style="bold red" if one.verdict == "differs" else "yellow"), soft_wrap=True)
            out.print(Text(f"  {text.line(one.difference or _missing(one))}"), soft_wrap=True)
    counted = [
        f"{count(len(checked.having('fits')), 'workflow fits', 'workflows fit')}",
        f"{count(len(checked.having('differs')), 'differs', 'differ')}",
        f"{len(checked.having('no code')):,} without code here",
    ]
    more = "" if checked.is_whole else "; there are more: --limit"
    out.print(Text(", ".join(counted) + more))


def _heading(one: CheckedWorkflow) -> str:
    key = "" if one.key is None else f" {text.line(one.key)}"
    return f"{one.verdict}  {one.id}  {versioned(text.line(one.workflow), one.version)}{key}  {one.state}"


def _missing(one: CheckedWorkflow) -> str:
    return f"this code has no version {one.version} of it, nor a migration from that to another"
