"""What several commands have in common: which app, which database, and how much to say when something fails."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import click
from click.core import ParameterSource

from rowlock.app.app import Rowlock
from rowlock.cli.shared.import_app import AppNotFound, load_app
from rowlock.db.address import find_address
from rowlock.db.errors import readable_errors
from rowlock.store import schema
from rowlock.store.query import Conversation

Command = TypeVar("Command", bound=Callable[..., object])

_DEBUG = "rowlock.debug"
_APP_VARIABLE = "ROWLOCK_APP"


@dataclass(frozen=True, slots=True)
class AppChoice:
    """What the command line says about the app and its database; it wins over the constructor and the environment."""

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
    """Give a command `--app`, `--url`, `--schema` and `--embedded`, gathered in its first argument, a Choice.

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

        decorated: Callable[..., object] = gathered
        for option in reversed(options):
            decorated = option(decorated)
        return decorated  # type: ignore[return-value]  # click keeps the function and adds to it

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
    """The app that was chosen; its connections are closed at the end.

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
    answered: list[datetime] = yield schema.now()
    return answered[0]
