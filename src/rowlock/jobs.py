"""Jobs as users hold them: the handle that enqueue returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Job(Generic[R_co]):
    """A job that was enqueued. `created` is False when its key already belonged to a live job, which this then is."""

    id: UUID
    task: str
    queue: str
    created: bool = True
