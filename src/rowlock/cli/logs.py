"""Plain log lines on standard error, one per record, that no data can break or repaint."""

from __future__ import annotations

import logging

from rowlock.cli import words

LEVELS = ("debug", "info", "warning", "error")


class Lines(logging.Formatter):
    """Time, level, logger, message; a traceback follows on lines of its own."""

    def __init__(self, *, with_pid: bool) -> None:
        pid = "[%(process)d] " if with_pid else ""
        super().__init__(f"%(asctime)s %(levelname)-7s %(name)s {pid}%(message)s")
        self.default_msec_format = "%s.%03d"

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        """The line, without its traceback."""
        return words.line(super().formatMessage(record))

    def formatException(self, ei: object) -> str:  # noqa: N802  logging's name
        """The traceback."""
        return words.lines(super().formatException(ei))  # type: ignore[arg-type]


def start_logging(level: str, *, with_pid: bool = False) -> None:
    """Send every record from `level` up to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines(with_pid=with_pid))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level.upper())
