"""The pytest plugin: a PostgreSQL server for each test process, and a database with Rowlock's schema for each test.

It lies beside the package, not in it: pytest loads it in every project of an environment, and importing the package
takes half a second. So everything of ours is imported by the fixture that needs it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rowlock import Rowlock


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "rowlock_app", "The app that the fixture rowlock_app means, as in `rowlock worker --app`: module:name."
    )


@pytest.fixture(scope="session")
def rowlock_server() -> Iterator[str]:
    """The address of a PostgreSQL server of this test process alone, in a temporary folder.

    Override it to return the address of another server, where a role may create databases.
    """
    from rowlock.db.embedded import disposable  # noqa: PLC0415  see above

    with disposable.server() as url:
        yield url


@pytest.fixture(scope="session")
def rowlock_template(rowlock_server: str) -> Iterator[str]:
    """The address of the database of which every test gets a copy; override it to add tables of your own."""
    from rowlock.db.embedded import disposable  # noqa: PLC0415  see above

    with disposable.migrated(rowlock_server) as url:
        yield url


@pytest.fixture
def rowlock_url(rowlock_server: str, rowlock_template: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a database of this test's own, with Rowlock's schema; $ROWLOCK_URL says the same."""
    from rowlock.db.embedded import disposable  # noqa: PLC0415  see above

    with disposable.database(rowlock_server, template=rowlock_template) as url:
        monkeypatch.setenv("ROWLOCK_URL", url)
        yield url


@pytest.fixture
def rowlock_app(rowlock_url: str, pytestconfig: pytest.Config) -> Iterator[Rowlock]:
    """Your app, on a database of this test's own; `rowlock_app` in pytest's settings, or $ROWLOCK_APP, names it."""
    from rowlock.cli.shared.import_app import load_app  # noqa: PLC0415  see above
    from rowlock.testing import moved  # noqa: PLC0415  see above

    target = pytestconfig.getini("rowlock_app") or os.environ.get("ROWLOCK_APP")
    if not target:
        raise pytest.UsageError('name your app in pytest\'s settings: rowlock_app = "module:name", or in $ROWLOCK_APP')
    app = load_app(target)
    with moved(app, rowlock_url):
        app.migrate()  # nothing to do, unless its schema has another name
        yield app
