"""Plain log lines on standard error, one per record, that no data can break or repaint."""

from __future__ import annotations

import logging
import re

LEVELS = ("debug", "info", "warning", "error")

# Controls, and the marks that turn or break a line of text. A job's data may hold any of them.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_UNSAFE_IN_TRACEBACK = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class Lines(logging.Formatter):
    """Time, level, logger, message; a traceback follows on lines of its own."""

    def __init__(self, *, with_pid: bool) -> None:
        pid = "[%(process)d] " if with_pid else ""
        super().__init__(f"%(asctime)s %(levelname)-7s %(name)s {pid}%(message)s")
        self.default_msec_format = "%s.%03d"

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        """The line, without its traceback."""
        return _UNSAFE.sub(_escaped, super().formatMessage(record))

    def formatException(self, ei: object) -> str:  # noqa: N802  logging's name
        """The traceback."""
        return _UNSAFE_IN_TRACEBACK.sub(_escaped, super().formatException(ei))  # type: ignore[arg-type]


def start_logging(level: str, *, with_pid: bool = False) -> None:
    """Send every record from `level` up to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines(with_pid=with_pid))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level.upper())


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
