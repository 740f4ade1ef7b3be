"""Rowlock: durable background jobs, schedules and workflows for Python, on nothing but PostgreSQL.

Here is what one meets daily. Errors are in `rowlock.errors`, the types of what is returned in `rowlock.types`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from rowlock.app.app import Rowlock
from rowlock.app.job import Job
from rowlock.app.registry import Tasks
from rowlock.app.tasks import Call, Task
from rowlock.app.workflow import Workflow
from rowlock.errors import Cancel, RetryAfter, RowlockError, Snooze
from rowlock.model.filter import Filter
from rowlock.model.key import Key
from rowlock.model.pause import Breaker, Pause
from rowlock.model.retry import Retry
from rowlock.model.spec import Keep
from rowlock.version import __version__

if TYPE_CHECKING:
    from rowlock.model.results import Event, Page, Preview
    from rowlock.worker.attempt import current_job
    from rowlock.worker.worker import Worker
    from rowlock.workflow.context import Context

__all__ = [
    "Breaker",
    "Call",
    "Cancel",
    "Context",
    "Event",
    "Filter",
    "Job",
    "Keep",
    "Key",
    "Page",
    "Pause",
    "Preview",
    "Retry",
    "RetryAfter",
    "Rowlock",
    "RowlockError",
    "Snooze",
    "Task",
    "Tasks",
    "Worker",
    "Workflow",
    "__version__",
    "current_job",
]

# What only workers and operators use is imported when it is first asked for: whoever only enqueues does without.
_LATER = {
    "Context": "rowlock.workflow.context",
    "Event": "rowlock.model.results",
    "Page": "rowlock.model.results",
    "Preview": "rowlock.model.results",
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
