"""`rowlock doctor`: is the database healthy."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING

import click

from rowlock.cli.shared import text, times
from rowlock.cli.shared.options import AppChoice, app_options, debug_option, open_app
from rowlock.cli.shared.output import EXIT_CODES, json_option, masked, print_json
from rowlock.model.checkup import LEVELS, Checkup, Finding, Level

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

AMBER, RED = 4, 5
_EXIT_CODES = f"{EXIT_CODES}, {AMBER} something is amber, {RED} something is red, 130 interrupted."
_COLOURS = {"green": "dim", "amber": "yellow", "red": "bold red"}
_INDENT = 2
_LEVEL_WIDTH = 7


def _span(_ctx: click.Context, _parameter: click.Parameter, typed: str) -> timedelta:
    length = times.span(typed)
    if not length:
        raise click.BadParameter("it must be more than nothing; write 60s")
    return length


@click.command(epilog=_EXIT_CODES)
@click.option(
    "--target",
    default="60s",
    show_default=True,
    metavar="SPAN",
    callback=_span,
    help="How long a job may be due before it is too long: amber then, red at ten times as long.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["amber", "red"]),
    default="amber",
    show_default=True,
    help="From which level on the exit code says so.",
)
@json_option
@app_options(required=False)
@debug_option
def doctor(choice: AppChoice, *, target: timedelta, fail_on: Level, as_json: bool) -> None:
    """Check the health of the database, line by line, and show what to do.

    A few jobs are made, claimed and undone to see what they cost; nothing of it stays.
    """
    with open_app(choice) as app:
        checkup = masked(app.doctor(target=target))
    if as_json:
        print_json(checkup.to_dict())
    else:
        _show(checkup)
    if LEVELS.index(checkup.worst) >= LEVELS.index(fail_on):
        raise click.exceptions.Exit(RED if checkup.worst == "red" else AMBER)


def _show(checkup: Checkup) -> None:
    from rich.text import Text  # noqa: PLC0415  draws

    from rowlock.cli.shared.tables import console  # noqa: PLC0415  draws

    out = console()
    width = max(len(finding.name) for finding in checkup.findings)
    for group, findings in groupby(checkup.findings, key=lambda finding: finding.group):
        out.print(Text(group, style="bold"))
        for finding in findings:
            _print(out, _heading(finding, width), indent=_INDENT)
            for line in _details(finding):
                _print(out, line, indent=_INDENT + _LEVEL_WIDTH)
    counts = {level: len(list(checkup.at_level(level))) for level in reversed(LEVELS)}
    out.print(Text(f"\n{text.instant(checkup.at)}: " + ", ".join(f"{n} {level}" for level, n in counts.items())))


def _print(out: Console, text: Text, *, indent: int) -> None:
    """Print a text that may be longer than a line, all of it this far to the right."""
    for line in text.wrap(out, max(20, out.width - indent)):
        line.rstrip()
        line.pad_left(indent)
        out.print(line, soft_wrap=True)


def _heading(finding: Finding, width: int) -> Text:
    from rich.text import Text  # noqa: PLC0415  draws

    heading = Text(f"{finding.level:<{_LEVEL_WIDTH}}", style=_COLOURS[finding.level])
    line = f"{finding.name:<{width + 2}}{text.line(finding.figure)}"
    return heading.append(line, style="dim" if finding.level == "green" else "default")


def _details(finding: Finding) -> Iterator[Text]:
    """The reason and the remedy; for what is healthy, only how an estimate was made."""
    from rich.text import Text  # noqa: PLC0415  draws

    if finding.do is not None:
        yield Text(text.line(finding.says))
        yield Text(f"do: {text.line(finding.do)}")
    elif finding.group == "load":
        yield Text(text.line(finding.says), style="dim")
