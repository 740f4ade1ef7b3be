"""Calls as they are typed: a task's name, and its arguments as JSON."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from typing import Any

import click

from rowlock.app.app import Rowlock
from rowlock.app.tasks import Call
from rowlock.cli.shared.filters import named_values
from rowlock.cli.shared.import_app import importing
from rowlock.cli.shared.options import Command
from rowlock.errors import UnknownTask
from rowlock.model.names import unversioned
from rowlock.model.spec import AS_DECLARED


def parse_arguments(whole: str | None, named: Mapping[str, object]) -> Mapping[str, object]:
    """The arguments that `--args` or several `--arg` say."""
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


def make_call(app: Rowlock, name: str, arguments: Mapping[str, object], *, target: str | None) -> Call[Any]:
    """A call; where the task's code is at hand, with arguments such as its handler would be given."""
    if target is None:
        return app.call(name, (), arguments)
    with importing(target):
        app.load()
    task = app.tasks.get(*unversioned(name))
    if task is None:
        close = difflib.get_close_matches(name, app.tasks.names(), n=1)
        instead = f"did you mean {close[0]}?" if close else f"it knows {', '.join(app.tasks.names()) or 'none'}"
        raise UnknownTask(f"the app has no task {name!r}; {instead} (without --app any name is taken)")
    return Call(task, task.arguments.encode_json(arguments), AS_DECLARED)


def argument_options(*, whole: str, one: str) -> Callable[[Command], Command]:
    """Give a command `--args` and `--arg`, for `arguments_of`; `whole` and `one` are what each is said to be for."""

    def decorate(command: Command) -> Command:
        named = click.option("--arg", "named", multiple=True, callback=named_values, metavar="NAME=JSON", help=one)(
            command
        )
        return click.option("--args", "whole", metavar="JSON", help=whole)(named)

    return decorate
