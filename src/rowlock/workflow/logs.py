"""Logs: records about jobs, with the same fields everywhere, and about steps that fail."""

from __future__ import annotations

import logging

from rowlock.db.safe_logger import SafeLogger
from rowlock.model.failure import Failure, recalled
from rowlock.model.formatting import span
from rowlock.model.row import ClaimedJob, Rescued
from rowlock.model.workflow.step import StepUpdate

log = SafeLogger("rowlock.workflow")


def log_fields(row: ClaimedJob | Rescued) -> dict[str, object]:
    """The fields that every log record about a job has."""
    return {"job_id": row.id, "task": row.task, "queue": row.queue, "attempt": row.failures + 1}


def log_failure(
    to: SafeLogger,
    level: int,
    text: tuple[object, ...],
    fields: dict[str, object],
    failure: Failure,
    *,
    error: BaseException | None,
    with_traceback: bool = True,
) -> None:
    """Write a record about a failure, with the traceback that is stored: short and printable whatever the error is.

    `text` is the message and its arguments. The error itself, if it is still there, goes with it as `exc_info`.
    """
    fields |= {"error_type": failure.type, "error": failure.message}
    message, *args = text
    to.log(
        level,
        str(message),
        *args,
        extra=fields,
        exc_info=error if with_traceback else None,
        exc_text=failure.traceback.rstrip() or None if with_traceback else None,  # or a formatter makes a longer one
    )


def log_step_failure(row: ClaimedJob, record: StepUpdate, *, of: int, error: BaseException) -> None:
    """Log a try of a step that failed: the last one with its traceback, those before it only for who debugs."""
    is_last = record.state == "failed"
    level = logging.ERROR if is_last else logging.WARNING
    if not log.isEnabledFor(level):
        return
    failure = recalled(record.error)
    next_try = "" if record.delay is None else f" and is tried again in {span(record.delay)}"
    log_failure(
        log,
        level,
        (
            f"%s %s: step %s failed{' for good' if is_last else ''} in try %d of %d%s: %s",
            *(row.task, row.id, record.key, record.attempts, of, next_try, failure.first_line),
        ),
        log_fields(row) | {"step": record.key, "step_try": record.attempts},
        failure,
        error=error,
        with_traceback=is_last or log.isEnabledFor(logging.DEBUG),
    )
