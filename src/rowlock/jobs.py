"""Jobs as users hold them: the handle that enqueue returns."""

from __future__ import annotations

from typing import Generic, TypeVar
from uuid import UUID

R_co = TypeVar("R_co", covariant=True)


class Job(Generic[R_co]):
    """A job that was enqueued. `created` is False when its key already belonged to a live job, which this then is."""

    __slots__ = ("_id", "created", "queue", "task")

    def __init__(self, job_id: str, *, task: str, queue: str, created: bool = True) -> None:
        self._id = job_id
        self.task = task
        self.queue = queue
        self.created = created

    @property
    def id(self) -> UUID:
        """The job's id, a UUIDv7: ids of one process sort by the time they were made."""
        return UUID(self._id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self._id == other._id

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        return f"<Job {self._id} of {self.task} on {self.queue}>"
