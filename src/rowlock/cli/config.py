"""`rowlock config`: every setting in force, and its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import click
from click.core import ParameterSource

from rowlock.app.app import Rowlock
from rowlock.cli.shared import text
from rowlock.cli.shared.options import AppChoice, app_options, debug_option
from rowlock.cli.shared.output import EXIT_CODES, json_option, print_json
from rowlock.cli.shared.worker_options import worker_options
from rowlock.db.address import Address, Schema
from rowlock.db.setting import SettingValue
from rowlock.errors import NotConfigured
from rowlock.model.redact import redact_address
from rowlock.model.spec import Keep
from rowlock.worker.settings import Timing, threads_for

_COMMAND_LINE = "command line"
_CONSTRUCTOR = "constructor"
_DEFAULT = "default"

Value = str | float | timedelta | Sequence[str] | Mapping[str, float] | Mapping[str, timedelta] | None


@dataclass(frozen=True, slots=True)
class SettingInForce:
    """A setting in force, and where it came from."""

    name: str
    value: Value
    source: str


@click.command(epilog=f"{EXIT_CODES}.")
@app_options(required=False)
@worker_options
@json_option
@debug_option
@click.pass_context
def config(
    ctx: click.Context,
    choice: AppChoice,
    /,
    *,
    as_json: bool,
    slots: int,
    threads: int | None,
    lease: timedelta,
    renew: timedelta | None,
    worker_deadline: timedelta | None,
    **typed: Value,
) -> None:
    """Show every setting in force, and where it came from.

    The command line wins over the constructor (Rowlock(…)), the constructor over the environment, the environment over
    the default. Passwords are not shown. Needs no database.
    """
    timing = Timing.chosen(lease=lease, renew=renew, deadline=worker_deadline)
    times = {"lease": timing.lease, "renew": timing.renew, "worker_deadline": timing.deadline}
    places = {"slots": slots, "threads": threads or threads_for(slots)}
    settings = [*_of_app(ctx, choice), *_of_worker(ctx, {**typed, **places, **times})]
    if as_json:
        print_json({one.name: {"value": _in_json(one.value), "source": one.source} for one in settings})
    else:
        _print([(one.name, _in_text(one.value), one.source) for one in settings])


def _of_app(ctx: click.Context, choice: AppChoice) -> Iterator[SettingInForce]:
    app = choice.open()
    yield SettingInForce("app", choice.app, _source(ctx, "app"))
    yield _url(app)
    yield SettingInForce("schema", app.database.schema, _source_of(app.database.named_schema))
    yield from _reach(app)
    yield SettingInForce("imports", app.imports, _CONSTRUCTOR if app.imports else _DEFAULT)
    keep = {"succeeded": app.keep.succeeded, "failed": app.keep.failed, "cancelled": app.keep.cancelled}
    yield SettingInForce("keep", keep, _DEFAULT if app.keep == Keep() else _CONSTRUCTOR)


def _url(app: Rowlock) -> SettingInForce:
    try:
        return SettingInForce("url", str(app.database.address), _source_of(app.database.address))
    except NotConfigured as error:
        return SettingInForce("url", None, str(error))


def _reach(app: Rowlock) -> Iterator[SettingInForce]:
    """How the database is reached."""
    pooler, listen, deadline = app.database.pooler, app.database.listen_url, app.database.deadline
    yield SettingInForce("pooler", pooler.value, _source_of(pooler))
    yield SettingInForce(
        "listen_url", None if listen.value is None else redact_address(listen.value), _source_of(listen)
    )
    yield SettingInForce("deadline", deadline.value, _source_of(deadline))


def _source_of(place: Address | Schema | SettingValue[Any]) -> str:
    """Where it was set: `--url`, `url=` and `$ROWLOCK_URL` each in the words that all settings share."""
    if place.source.startswith("--"):
        return _COMMAND_LINE
    return _CONSTRUCTOR if place.source.endswith("=") else place.source


def _of_worker(ctx: click.Context, values: Mapping[str, Value]) -> Iterator[SettingInForce]:
    for name in (option.name for option in ctx.command.params):
        if name in values:
            yield SettingInForce(name, values[name], _source(ctx, name))


def _source(ctx: click.Context, name: str) -> str:
    match ctx.get_parameter_source(name):
        case ParameterSource.COMMANDLINE:
            return _COMMAND_LINE
        case ParameterSource.ENVIRONMENT:
            option = next(one for one in ctx.command.params if one.name == name)
            return f"${option.envvar}"
        case _:
            return _DEFAULT


def _in_json(value: Value) -> object:
    match value:
        case timedelta():
            return value.total_seconds()
        case Mapping():
            return {name: _in_json(inner) for name, inner in value.items()}
        case str() | int() | float() | None:
            return value
        case _:
            return list(value)


def _in_text(value: Value) -> str:
    match value:
        case None | () | bool():
            return "yes" if value is True else "no" if value is False else "none"
        case str():
            return value
        case int() | float():
            return f"{value:.12g}"
        case timedelta():
            days, rest = divmod(value, timedelta(days=1))
            return f"{days} d" if days and not rest else f"{value.total_seconds():.12g} s"
        case Mapping():
            return ", ".join(f"{name} {_in_text(inner)}" for name, inner in value.items())
        case _:
            return ", ".join(value)


def _print(rows: Sequence[tuple[str, str, str]]) -> None:
    safe = [[text.line(cell) for cell in row] for row in [("setting", "value", "from"), *rows]]
    widths = [max(len(row[column]) for row in safe) for column in range(2)]
    for name, value, source in safe:
        click.echo(f"{name:<{widths[0]}}  {value:<{widths[1]}}  {source}")
