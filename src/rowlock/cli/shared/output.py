"""Output: one JSON document or text, secrets masked, the next page, and exit codes."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Callable
from typing import NoReturn, TypeVar

import click

from rowlock.app.masking import mask
from rowlock.model.redact import redact_address

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., object])

# -P, because the current folder goes on sys.path only when the app is imported, in a child as in its parent.
OURSELVES = (sys.executable, "-P", "-m", "rowlock")

NOTHING_MATCHED = 3
INTERRUPTED = 130

EXIT_CODES = "Exit codes: 0 done, 1 could not be done (a sentence on standard error says why), 2 wrong usage"
EXIT_CODES_OF_READS = f"{EXIT_CODES}, 130 interrupted."


def exit_codes(nothing_matched: str) -> str:
    """The line that ends a command's help, with what 3 means for it."""
    return f"{EXIT_CODES}, 3 {nothing_matched}, 130 interrupted."


EXIT_CODES_OF_CHANGES = exit_codes("nothing matched")


def json_option(command: Command) -> Command:
    """Give a command `--json`, as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")(command)


def print_json(document: object) -> None:
    """Print one document. In ASCII, so that no terminal obeys what the data says."""
    try:
        text = json.dumps(document, indent=2, allow_nan=False)
    except ValueError:  # 1e999 is JSON, and infinite in Python
        text = json.dumps(_finite(document), indent=2)
    click.echo(text)


def _finite(value: object) -> object:
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {name: _finite(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_finite(inner) for inner in value]
        case _:
            return value


def nothing_matched(sentence: str) -> NoReturn:
    """Print the sentence, and exit with the code for nothing matched."""
    click.echo(sentence, err=True)
    raise click.exceptions.Exit(NOTHING_MATCHED)


def at_a_terminal() -> bool:
    """Whether there is a terminal to ask a question at."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def reveal_option(command: Command) -> Command:
    """Give a command `--reveal`."""
    return click.option("--reveal", is_flag=True, help="Show secrets, too, in place of ***.")(command)


def masked(value: T, *, reveal: bool = False) -> T:
    """The same record, or several, with `***` for each secret, as on the dashboard; with `reveal` as it is."""
    return value if reveal else mask(value, show_arguments=True)


def next_page(before: object) -> None:
    """Print the command for the next page, if there is one, on standard error, away from the data."""
    if before is not None:
        click.echo(f"more: {again(before)}", err=True)


def again(before: object) -> str:
    """The command that was typed, going on at another place: for the next page, or after an interruption."""
    command: list[str] = click.get_current_context().obj or []
    if tuple(command[: len(OURSELVES)]) == OURSELVES:
        command = ["rowlock", *command[len(OURSELVES) :]]  # as people type it
    kept, skip = [], False
    for word in command:
        if not skip and word != "--before" and not word.startswith("--before="):
            kept.append(redact_address(word))
        skip = word == "--before"
    place = [] if before is None else ["--before", str(before)]
    return shlex.join([*kept, *place])
