"""What several commands have in common: which app, which database, and how much to say when something fails."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import click

from rowlock.app import Rowlock
from rowlock.cli.load import load_app
from rowlock.db.address import find_address
from rowlock.store.query import DEFAULT_SCHEMA

Command = TypeVar("Command", bound=Callable[..., object])

_DEBUG = "rowlock.debug"


@dataclass(frozen=True, slots=True)
class Choice:
    """What the command line says about the app and its database; it wins over the constructor and the environment."""

    app: str | None
    url: str | None
    schema: str | None
    embedded: str | None

    def open(self) -> Rowlock:
        """The app, on the database that was chosen. No I/O but the import of its module."""
        if self.app is None:
            return Rowlock(self.url, embedded=self.embedded, schema=self.schema or DEFAULT_SCHEMA)
        app = load_app(self.app)
        if self.url or self.embedded:
            app.database.move(find_address=lambda: find_address(self.url, self.embedded, said="--url"))
        if self.schema:
            app.database.move(schema=self.schema)
        return app


def app_options(*, required: bool) -> Callable[[Command], Command]:
    """Give a command `--app`, `--url`, `--schema` and `--embedded`, gathered in its first argument, a Choice."""
    options = [
        click.option(
            "--app",
            required=required,
            metavar="MODULE[:NAME]",
            help="The Rowlock of your program; NAME is app by default.",
        ),
        click.option(
            "--url", help="The database, postgresql://USER@HOST/NAME; else the app's, $ROWLOCK_URL, $DATABASE_URL."
        ),
        click.option("--schema", help="The schema Rowlock lives in; else the app's."),
        click.option("--embedded", metavar="FOLDER", help="A private PostgreSQL in FOLDER, instead of --url."),
    ]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def gathered(
            *, app: str | None, url: str | None, schema: str | None, embedded: str | None, **rest: object
        ) -> object:
            if url and embedded:
                raise click.UsageError("--url and --embedded name two databases; give one of them")
            return command(Choice(app, url, schema, embedded), **rest)

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
