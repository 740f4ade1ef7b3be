"""Safe logger: logs like any other, and what the app's logging raises ends nothing.

`logging` catches what handlers raise when they write, and nothing else: neither errors of filters, nor of a record
factory, nor its own KeyError where that factory has set a name that `extra` uses.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from types import TracebackType

from rowlock.model.formatting import line

# As `logging` takes it: an error, or True for the one that is being handled.
Shown = BaseException | bool | None


class SafeLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger that never raises: a record that cannot be logged is a plain line on standard error."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.getLogger(name))
        self.isEnabledFor = self.logger.isEnabledFor  # type: ignore[method-assign]  # asked for each job: one call, not two

    def log(  # type: ignore[override]  # with what we use, and no more
        self,
        level: int,
        msg: str,
        *args: object,
        extra: dict[str, object] | None = None,
        exc_info: Shown = None,
        exc_text: str | None = None,
    ) -> None:
        """Log a message; `exc_text` is the traceback to show instead of the one that a formatter would make."""
        if not self.isEnabledFor(level):
            return
        try:
            file, number, function, _ = self.logger.findCaller(stacklevel=2)
            name = self.logger.name
            record = self.logger.makeRecord(name, level, file, number, msg, args, _error(exc_info), function)
            vars(record).update(extra or {})
            record.exc_text = exc_text
            self.logger.handle(record)
        except Exception as error:
            _tell(msg, args, error)


def _error(shown: Shown) -> tuple[type[BaseException], BaseException, TracebackType | None] | None:
    error = sys.exception() if shown is True else shown
    return (type(error), error, error.__traceback__) if isinstance(error, BaseException) else None


def _tell(message: str, args: tuple[object, ...], error: Exception) -> None:
    with suppress(Exception):  # there may be no standard error, or nobody who reads it
        said = line(message % args)
        sys.stderr.write(f"rowlock: logging failed ({line(f'{type(error).__name__}: {error}')}); not logged: {said}\n")
