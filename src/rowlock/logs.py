"""Logging: formatters for text and JSON, and a filter that names the running job."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Final

from rowlock.model.formatting import line, lines
from rowlock.worker.attempt import running

__all__ = ["JobFields", "JsonLines", "TextLines"]

_OF_JOB: Final = ("task", "queue", "attempt")
# What every record has; the rest was given by `extra=` or a filter.
_STANDARD: Final = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}


class JobFields(logging.Filter):
    """Gives every record the fields job_id, task, queue and attempt, of the job that is running where it is logged.

    Put it on handlers. It knows the job in async and in sync handlers, in steps of workflows, and in whatever copies
    the context, such as asyncio.to_thread. Records from elsewhere have `missing` in these fields.
    """

    def __init__(self, *, missing: object = "-") -> None:
        super().__init__()
        self._missing = missing

    def filter(self, record: logging.LogRecord) -> bool:
        """Complete the record; it always passes."""
        fields = vars(record)
        if "job_id" not in fields:  # else the record names its job itself
            job = running.get(None)
            fields["job_id"] = self._missing if job is None else str(job.id)
            for name in _OF_JOB:
                fields.setdefault(name, self._missing if job is None else getattr(job, name))
        return True


class TextLines(logging.Formatter):
    """One line per record: time, level, logger, the job if there is one, message; then the traceback."""

    def __init__(self, *, with_pid: bool = False) -> None:
        pid = "[%(process)d] " if with_pid else ""
        super().__init__(f"%(asctime)s %(levelname)-7s %(name)s {pid}%(message)s")
        self.default_msec_format = "%s.%03d"

    def format(self, record: logging.LogRecord) -> str:
        """The line, and the traceback."""
        record.message = record.getMessage()
        record.asctime = self.formatTime(record)
        text = line(self.formatMessage(record))
        return "\n".join([text, *(lines(more) for more in _tracebacks(self, record))])

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        """The line, without its traceback."""
        text = super().formatMessage(record)
        job = getattr(record, "job_id", None)
        if job in {None, "-"} or record.name.startswith("rowlock."):  # whose messages name the job themselves
            return text
        return f"{text.removesuffix(record.message)}{getattr(record, 'task', '')} {job}: {record.message}"


class JsonLines(logging.Formatter):
    """One JSON object per record: time, level, logger, message, the job's fields, whatever `extra=` gave, the error."""

    def format(self, record: logging.LogRecord) -> str:
        """The object, on one line."""
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        entry |= {
            name: value
            for name, value in vars(record).items()
            if name not in _STANDARD and name not in entry and value is not None
        }
        if texts := _tracebacks(self, record):
            entry["traceback"] = "\n".join(texts)
        return json.dumps(entry, default=str, skipkeys=True)


def _tracebacks(formatter: logging.Formatter, record: logging.LogRecord) -> list[str]:
    """The traceback of a record's error, and the stack that it was logged from."""
    if record.exc_info and not record.exc_text:
        record.exc_text = formatter.formatException(record.exc_info)
    stack = formatter.formatStack(record.stack_info) if record.stack_info else None
    return [text for text in (record.exc_text, stack) if text]
