"""Options that commands share: which app and database, and debugging; opening the app."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from rowlock.app.app import Rowlock
from rowlock.cli.shared.import_app import AppNotFound, load_app
from rowlock.db.address import find_address
from rowlock.db.errors import readable_errors
from rowlock.errors import InvalidArguments, InvalidOption
from rowlock.store import schema
from rowlock.store.query import Conversation

Command = TypeVar("Command", bound=Callable[..., object])

_DEBUG = "rowlock.debug"
_APP_VARIABLE = "ROWLOCK_APP"


def gather_options(command: Command, options: Sequence[Callable[[Any], Any]], **into: type) -> Command:
    """Give a command options, and what was typed of them as one value: `filters=FilterOptions` has a field for each."""
    [(name, kind)] = into.items()

    @functools.wraps(command)
    def with_value(*positional: object, **given: object) -> object:
        named = {field.name: given.pop(field.name) for field in fields(kind)}
        return command(*positional, **{name: kind(**named)}, **given)

    return add_options(with_value, options)  # type: ignore[return-value]  # click keeps the function and adds to it


def add_options(command: Callable[..., object], options: Sequence[Callable[[Any], Any]]) -> Callable[..., object]:
    """Give a command these options, in the order in which its help shows them."""
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class AppChoice:
    """The app and database that were typed; they win over the constructor and the environment."""

    app: str | None
    url: str | None
    schema: str | None
    embedded: str | None
    app_source: ParameterSource | None = None

    def open(self) -> Rowlock:
        """The app, on the database that was chosen. No I/O but the import of its module."""
        app = Rowlock() if self.app is None else self._load(self.app)
        if self.url or self.embedded:
            app.database.move(find_address=lambda: find_address(self.url, self.embedded, said="--url"))
        if self.schema:
            app.database.move(schema=self.schema)
        return app

    def _load(self, target: str) -> Rowlock:
        try:
            return load_app(target)
        except AppNotFound as error:
            if self.app_source is ParameterSource.ENVIRONMENT:
                raise AppNotFound(f"{error} (--app is from ${_APP_VARIABLE})") from error
            raise


def app_options(*, required: bool, with_schema: bool = True) -> Callable[[Command], Command]:
    """Give a command `--app`, `--url`, `--schema` and `--embedded`, gathered in its first argument, an AppChoice.

    Without `with_schema` the command has one of its own, and the option is left out.
    """
    options = [
        click.option(
            "--app",
            required=required,
            metavar="MODULE[:NAME]",
            envvar=_APP_VARIABLE,
            show_envvar=True,
            help="The Rowlock of your program; NAME is app by default.",
        ),
        click.option(
            "--url", help="The database, postgresql://USER@HOST/NAME; else the app's, $ROWLOCK_URL, $DATABASE_URL."
        ),
        click.option("--schema", help="The schema Rowlock lives in; else the app's, $ROWLOCK_SCHEMA, rowlock."),
        click.option("--embedded", metavar="FOLDER", help="A private PostgreSQL in FOLDER, instead of --url."),
    ]
    if not with_schema:
        del options[2]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def gathered(
            *, app: str | None, url: str | None, schema: str | None = None, embedded: str | None, **rest: object
        ) -> object:
            if url and embedded:
                raise click.UsageError("--url and --embedded name two databases; give one of them")
            source = click.get_current_context().get_parameter_source("app")
            return command(AppChoice(app, url, schema, embedded, source), **rest)

        return add_options(gathered, options)  # type: ignore[return-value]  # click keeps the function and adds to it

    return decorate


def debug_option(command: Command) -> Command:
    """Give a command `--debug`."""

    def remember(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001  click calls it so
        ctx.meta[_DEBUG] = value

    return click.option(
        "--debug", is_flag=True, expose_value=False, callback=remember, help="Show the traceback of a failure."
    )(command)


def is_debugging(ctx: click.Context) -> bool:
    """Whether `--debug` was given."""
    return bool(ctx.meta.get(_DEBUG))


@contextmanager
def open_app(choice: AppChoice) -> Iterator[Rowlock]:
    """Open the app that was chosen, and close its connections at the end; what PostgreSQL refuses becomes a sentence.

    What a command does is committed when it ends, so nothing of it joins a connection of the app's own.
    """
    app = choice.open()
    with readable_errors(app.database), app, app.within(None):
        yield app


def database_time(app: Rowlock) -> datetime:
    """The database's clock: ages are counted by it, because jobs are stamped by it."""
    return app.database.converse(read_clock, atomic=False)


def read_clock() -> Conversation[datetime]:
    """Ask for the time."""
    rows: list[datetime] = yield schema.now()
    return rows[0]


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn a value that the library refuses inside it into wrong usage: exit code 2."""
    try:
        yield
    except (InvalidOption, InvalidArguments) as error:
        raise click.UsageError(str(error)) from error
