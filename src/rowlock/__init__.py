"""Durable background jobs, schedules and workflows for Python, on nothing but PostgreSQL."""

from importlib import import_module
from typing import TYPE_CHECKING

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
from rowlock.model.filter import Filter
from rowlock.model.key import Key
from rowlock.model.pause import Breaker
from rowlock.model.retry import Retry
from rowlock.model.row import Fence
from rowlock.model.spec import Keep
from rowlock.version import __version__

if TYPE_CHECKING:
    from rowlock.model.checkup import Checkup, Finding
    from rowlock.model.explanation import Explanation
    from rowlock.model.record import JobRecord
    from rowlock.model.schedule.schedule import Schedule
    from rowlock.model.stats.series import Point, Series
    from rowlock.model.stats.stats import Stats
    from rowlock.model.workflow.timeline import Timeline
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

# What only workers and operators use is imported when it is first asked for: whoever only enqueues does without.
_LATER = {
    "Checkup": "rowlock.model.checkup",
    "Context": "rowlock.workflow.context",
    "CurrentJob": "rowlock.worker.attempt",
    "Explanation": "rowlock.model.explanation",
    "Finding": "rowlock.model.checkup",
    "JobRecord": "rowlock.model.record",
    "Point": "rowlock.model.stats.series",
    "Schedule": "rowlock.model.schedule.schedule",
    "Series": "rowlock.model.stats.series",
    "Stats": "rowlock.model.stats.stats",
    "Timeline": "rowlock.model.workflow.timeline",
    "Worker": "rowlock.worker.worker",
    "current_job": "rowlock.worker.attempt",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name of the package that is not there yet."""
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_LATER[name]), name)
        return value
