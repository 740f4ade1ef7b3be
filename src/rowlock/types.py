"""Types: what calls of an app and of a job return, for annotations."""

from rowlock.model.checkup import Checkup, Finding
from rowlock.model.explanation import Explanation
from rowlock.model.record import JobRecord
from rowlock.model.results import Cursor, Done
from rowlock.model.row import Fence
from rowlock.model.schedule.schedule import Schedule
from rowlock.model.stats.series import Point, Series
from rowlock.model.stats.stats import QueueStats, Stats
from rowlock.model.workflow.record import WorkflowPage, WorkflowRecord
from rowlock.model.workflow.timeline import Timeline
from rowlock.worker.attempt import CurrentJob

__all__ = [
    "Checkup",
    "CurrentJob",
    "Cursor",
    "Done",
    "Explanation",
    "Fence",
    "Finding",
    "JobRecord",
    "Point",
    "QueueStats",
    "Schedule",
    "Series",
    "Stats",
    "Timeline",
    "WorkflowPage",
    "WorkflowRecord",
]
