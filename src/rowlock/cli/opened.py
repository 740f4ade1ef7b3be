"""The app of a command for as long as the command runs, with everything that PostgreSQL may refuse put into words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from rowlock.app.app import Rowlock
from rowlock.cli.options import Choice
from rowlock.db.errors import readable_errors
from rowlock.store import schema
from rowlock.store.query import Conversation


@contextmanager
def opened(choice: Choice) -> Iterator[Rowlock]:
    """The app that was chosen; its connections are closed at the end.

    What a command does is committed when it ends, so nothing of it joins a connection of the app's own.
    """
    app = choice.open()
    with readable_errors(app.database), app, app.within(None):
        yield app


def database_time(app: Rowlock) -> datetime:
    """The database's clock: ages are counted by it, because jobs are stamped by it."""
    return app.database.converse(clock, atomic=False)


def clock() -> Conversation[datetime]:
    """Ask for the time."""
    answered: list[datetime] = yield schema.now()
    return answered[0]
