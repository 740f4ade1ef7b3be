"""What the dashboard needs beside Rowlock itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rowlock.errors import RowlockError


@contextmanager
def with_extra() -> Iterator[None]:
    """Import the dashboard inside of it: a sentence says what is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "rowlock":
            raise
        raise RowlockError(f"the dashboard needs {error.name}; run: pip install 'rowlock[dashboard]'") from error
