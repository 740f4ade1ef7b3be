"""Point an app to a database of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rowlock.app import Rowlock
from rowlock.db.address import find_address


@contextmanager
def moved(app: Rowlock, url: str) -> Iterator[None]:
    """Mean the database at `url` for a while, whatever the app was made with: `with moved(app, url):`."""
    app.waiting_room.close()  # it listens to the database of before
    with app.database.moved(lambda: find_address(url, None)):
        try:
            yield
        finally:
            app.waiting_room.close()
