"""A queue or a task that an operator has stopped for a while."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause of a queue or of a task: since `at`, `by` whom and `why`; it ends by itself at `until`, if given."""

    queue: str | None
    task: str | None
    until: datetime | None
    why: str | None
    by: str
    at: datetime

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON knows it: times are strings."""
        return {
            name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(self).items()
        }
