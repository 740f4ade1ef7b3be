"""State: what a workflow says of itself in `ctx.state`."""

from __future__ import annotations

import json
from typing import Any

from rowlock.errors import WorkflowError
from rowlock.model.workflow.step import StoredStep


class WorkflowState:
    """The state of one attempt: `values` are the code's."""

    def __init__(self, start: StoredStep | None) -> None:
        """`start` is the record of what was carried over when the workflow restarted."""
        self.values: dict[str, Any] = {} if start is None or start.value is None else dict(json.loads(start.value))
        self._written = json.dumps(self.values)

    def to_json(self) -> str:
        """All of it; WorkflowError if that is not JSON."""
        if not self.values:
            return "{}"  # asked with every step
        try:
            return json.dumps(self.values, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise WorkflowError(f"ctx.state cannot be JSON ({error}); keep plain values there") from None

    def unwritten(self) -> str | None:
        """The same, if it has not been written yet; WorkflowError as above."""
        state = self.to_json()
        return state if state != self._written else None

    def last(self) -> str | None:
        """The same for the end of an attempt, whose next one makes it again where it is not JSON."""
        try:
            return self.unwritten()
        except WorkflowError:
            return None

    def wrote(self, state: str | None) -> None:
        """This has been written; None if nothing was to be written."""
        if state is not None:
            self._written = state
