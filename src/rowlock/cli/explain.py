"""`rowlock explain`: why a job does not run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID

import click

from rowlock.cli.shared import text
from rowlock.cli.shared.ids import JOB_ID, whole_id
from rowlock.cli.shared.options import AppChoice, app_options, debug_option, open_app
from rowlock.cli.shared.output import (
    NOTHING_MATCHED,
    exit_codes,
    json_option,
    masked,
    print_json,
)
from rowlock.model.explanation import Explanation


@click.command(epilog=exit_codes("there is no such job"))
@click.argument("job_id", metavar="JOB", type=JOB_ID)
@json_option
@app_options(required=False)
@debug_option
def explain(choice: AppChoice, *, job_id: UUID | str, as_json: bool) -> None:
    """Explain why a job is not running, or what became of it.

    One sentence, the facts behind it, and what to do. With --app, its arguments are also checked against that code.
    """
    with open_app(choice) as app:
        job_id = whole_id(app, job_id)
        found = masked(app.jobs.explain(job_id))
    if as_json:
        print_json(found.to_dict())
    else:
        _show(found)
    if found.state is None and found.code != "locked":
        raise click.exceptions.Exit(NOTHING_MATCHED)


def _show(found: Explanation) -> None:
    click.echo(text.line(found.says))
    facts = dict(_facts(found))
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        click.echo(f"  {name:{width}}  {text.line(value)}")
    for sentence in found.also:
        click.echo(f"also: {text.line(sentence)}")
    for part, why in found.unknown.items():
        click.echo(f"not known: {text.line(part)} ({text.line(why)})")
    if found.do is not None:
        click.echo(f"do: {text.line(found.do)}")


def _facts(found: Explanation) -> Iterator[tuple[str, str]]:
    """The facts that have a value."""
    for name, value in found.facts.items():
        if value is not None and value not in ("", [], ()):
            # A pid is for kill and pg_terminate_backend: without separators.
            yield name.replace("_", " "), str(value) if name == "pid" else _value(value, found.at)


def _value(value: object, now: datetime) -> str:
    match value:
        case datetime():
            return f"{text.instant(value)} ({text.age(value, now)})"
        case timedelta():
            return f"-{text.span(value)}" if value < timedelta(0) else text.span(value)
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case list() | tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)
