"""Task arguments: reads them as typed, and makes the call."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

import click

from rowlock.app.app import Rowlock
from rowlock.app.tasks import Call
from rowlock.cli.shared.import_app import load_tasks
from rowlock.cli.shared.options import Command
from rowlock.errors import InvalidArguments, InvalidOption, UnknownTask
from rowlock.model.names import unversioned
from rowlock.model.spec import AS_DECLARED
from rowlock.model.typed import read_argument, read_object


def parse_arguments(whole: str | None, named: Mapping[str, object]) -> Mapping[str, object]:
    """The arguments that were typed, as `--args` or as several `--arg`."""
    if whole is None:
        return named
    if named:
        raise click.UsageError("give --args or --arg, not both")
    try:
        return read_object(whole, "--args")
    except InvalidArguments as fault:
        raise click.UsageError(str(fault)) from None


def make_call(app: Rowlock, name: str, arguments: Mapping[str, object], *, target: str | None) -> Call[Any]:
    """A call of a task; with `--app`, its arguments are checked and encoded by the task's code."""
    if target is None:
        return app.call(name, **arguments)
    load_tasks(app, target)
    task = app.tasks.get(*unversioned(name))
    if task is None:
        close = difflib.get_close_matches(name, app.tasks.names(), n=1)
        instead = f"did you mean {close[0]}?" if close else f"it knows {', '.join(app.tasks.names()) or 'none'}"
        raise UnknownTask(f"the app has no task {name!r}; {instead} (without --app any name is taken)")
    return Call(task, task.arguments.encode_json(arguments), AS_DECLARED)


def argument_options(*, whole: str, one: str) -> Callable[[Command], Command]:
    """Give a command `--args` and `--arg`, for `parse_arguments`; `whole` and `one` are their help."""

    def decorate(command: Command) -> Command:
        named = click.option("--arg", "named", multiple=True, callback=named_values, metavar="NAME=JSON", help=one)(
            command
        )
        return click.option("--args", "whole", metavar="JSON", help=whole)(named)

    return decorate


def named_values(_ctx: click.Context, _parameter: click.Parameter, typed: tuple[str, ...]) -> dict[str, object]:
    """`NAME=JSON`, again and again; what is no JSON is a string: `--arg user=ada`, `--arg n=3`, `--arg 'n="3"'`."""
    values: dict[str, object] = {}
    for pair in typed:
        try:
            name, value = read_argument(pair)
        except InvalidOption as fault:
            raise click.BadParameter(str(fault)) from None
        if name in values:
            raise click.BadParameter(f"{name!r} is given twice")
        values[name] = value
    return values
