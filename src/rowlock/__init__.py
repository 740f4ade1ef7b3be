"""Durable background jobs, schedules and workflows for Python, on nothing but PostgreSQL."""

from rowlock.app import Rowlock
from rowlock.errors import (
    Cancel,
    EmbeddedError,
    InvalidArguments,
    InvalidOption,
    KeyTaken,
    NotConfigured,
    PayloadTooLarge,
    RetryAfter,
    RowlockError,
    SchemaMissing,
    Snooze,
    TaskError,
    UnknownTask,
    WrongConnection,
)
from rowlock.jobs import Job
from rowlock.model.retry import Retry
from rowlock.model.spec import Keep
from rowlock.tasks import Call, Task, Tasks
from rowlock.worker.attempt import CurrentJob, current_job
from rowlock.worker.worker import Worker

__all__ = [
    "Call",
    "Cancel",
    "CurrentJob",
    "EmbeddedError",
    "InvalidArguments",
    "InvalidOption",
    "Job",
    "Keep",
    "KeyTaken",
    "NotConfigured",
    "PayloadTooLarge",
    "Retry",
    "RetryAfter",
    "Rowlock",
    "RowlockError",
    "SchemaMissing",
    "Snooze",
    "Task",
    "TaskError",
    "Tasks",
    "UnknownTask",
    "Worker",
    "WrongConnection",
    "current_job",
]
