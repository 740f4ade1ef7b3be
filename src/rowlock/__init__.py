"""Durable background jobs, schedules and workflows for Python, on nothing but PostgreSQL."""

from rowlock.app import Rowlock
from rowlock.errors import (
    Cancel,
    EmbeddedError,
    InvalidArguments,
    InvalidOption,
    JobCancelled,
    JobFailed,
    JobNotFound,
    KeyTaken,
    LeaseLost,
    NoResult,
    NotConfigured,
    PayloadTooLarge,
    ResultTimeout,
    RetryAfter,
    RowlockError,
    SchemaMissing,
    Snooze,
    TaskError,
    UnknownTask,
    WrongConnection,
)
from rowlock.jobs import Job
from rowlock.model.fence import Fence
from rowlock.model.filter import Filter
from rowlock.model.record import JobRecord
from rowlock.model.retry import Retry
from rowlock.model.spec import Keep
from rowlock.model.stats import Stats
from rowlock.tasks import Call, Task, Tasks
from rowlock.worker.attempt import CurrentJob, current_job
from rowlock.worker.worker import Worker

__all__ = [
    "Call",
    "Cancel",
    "CurrentJob",
    "EmbeddedError",
    "Fence",
    "Filter",
    "InvalidArguments",
    "InvalidOption",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobNotFound",
    "JobRecord",
    "Keep",
    "KeyTaken",
    "LeaseLost",
    "NoResult",
    "NotConfigured",
    "PayloadTooLarge",
    "ResultTimeout",
    "Retry",
    "RetryAfter",
    "Rowlock",
    "RowlockError",
    "SchemaMissing",
    "Snooze",
    "Stats",
    "Task",
    "TaskError",
    "Tasks",
    "UnknownTask",
    "Worker",
    "WrongConnection",
    "current_job",
]
