"""Durable background jobs, schedules and workflows for Python, on nothing but PostgreSQL."""

from rowlock.app.app import Rowlock
from rowlock.app.job import Job
from rowlock.app.registry import Tasks
from rowlock.app.tasks import Call, Task
from rowlock.app.workflow import Workflow
from rowlock.errors import (
    Cancel,
    ChildCancelled,
    ChildFailed,
    EmbeddedError,
    InvalidArguments,
    InvalidOption,
    JobCancelled,
    JobFailed,
    JobNotFound,
    KeyTaken,
    LeaseLost,
    Locked,
    NoResult,
    NotAWorkflow,
    NotConfigured,
    PayloadTooLarge,
    ResultTimeout,
    RetryAfter,
    RowlockError,
    ScheduleError,
    ScheduleNotFound,
    SchemaMissing,
    SignalRefused,
    SignalTimeout,
    Snooze,
    StepFailed,
    TaskError,
    UnknownTask,
    WorkflowChanged,
    WorkflowError,
    WrongConnection,
)
from rowlock.model.checkup import Checkup, Finding
from rowlock.model.explanation import Explanation
from rowlock.model.filter import Filter
from rowlock.model.key import Key
from rowlock.model.pause import Breaker
from rowlock.model.record import JobRecord
from rowlock.model.retry import Retry
from rowlock.model.row import Fence
from rowlock.model.schedule.schedule import Schedule
from rowlock.model.spec import Keep
from rowlock.model.stats.series import Point, Series
from rowlock.model.stats.stats import Stats
from rowlock.model.workflow.timeline import Timeline
from rowlock.version import __version__
from rowlock.worker.attempt import CurrentJob, current_job
from rowlock.worker.worker import Worker
from rowlock.workflow.context import Context

__all__ = [
    "Breaker",
    "Call",
    "Cancel",
    "Checkup",
    "ChildCancelled",
    "ChildFailed",
    "Context",
    "CurrentJob",
    "EmbeddedError",
    "Explanation",
    "Fence",
    "Filter",
    "Finding",
    "InvalidArguments",
    "InvalidOption",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobNotFound",
    "JobRecord",
    "Keep",
    "Key",
    "KeyTaken",
    "LeaseLost",
    "Locked",
    "NoResult",
    "NotAWorkflow",
    "NotConfigured",
    "PayloadTooLarge",
    "Point",
    "ResultTimeout",
    "Retry",
    "RetryAfter",
    "Rowlock",
    "RowlockError",
    "Schedule",
    "ScheduleError",
    "ScheduleNotFound",
    "SchemaMissing",
    "Series",
    "SignalRefused",
    "SignalTimeout",
    "Snooze",
    "Stats",
    "StepFailed",
    "Task",
    "TaskError",
    "Tasks",
    "Timeline",
    "UnknownTask",
    "Worker",
    "Workflow",
    "WorkflowChanged",
    "WorkflowError",
    "WrongConnection",
    "__version__",
    "current_job",
]
