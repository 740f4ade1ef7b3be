"""Moved: points an app to a database of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rowlock.app.app import Rowlock
from rowlock.db.address import find_address
from rowlock.errors import InvalidOption


@contextmanager
def moved(app: Rowlock, url: str) -> Iterator[None]:
    """Use the database at `url` for a while, whatever the app was made with: `with moved(app, url):`."""
    if app.database.within.source is not None:
        raise InvalidOption(
            f"{app.database.within.source} says where this app's database is, and its jobs are enqueued there: neither "
            "moved() nor the fixture rowlock_app can put it elsewhere; use Django's own test database (TestCase, or "
            "pytest-django's db), where drain(app) finds the test's transaction by itself"
        )
    app.waiting_room.close()  # it listens to the database of before
    with app.database.moved(lambda: find_address(url, None)):
        try:
            yield
        finally:
            app.waiting_room.close()
