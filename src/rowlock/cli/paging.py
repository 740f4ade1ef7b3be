"""How to start this command again: for the next page of a list, and after an interruption."""

from __future__ import annotations

import shlex
import sys

import click

from rowlock.model.redact import redact_address

# -P, because the current folder goes on sys.path only when the app is imported, in a child as in its parent.
OURSELVES = (sys.executable, "-P", "-m", "rowlock")


def next_page(before: object) -> None:
    """The last line of a list that goes on: the command for the rest, on standard error, away from the data."""
    if before is not None:
        click.echo(f"more: {again(before)}", err=True)


def again(before: object) -> str:
    """What was typed, from another place on."""
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
