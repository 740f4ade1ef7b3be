"""History: what a workflow remembers, and where its code does not match that any more."""

from __future__ import annotations

from collections.abc import Iterable

from rowlock.errors import WorkflowChanged
from rowlock.model.failure import describe
from rowlock.model.workflow.step import StepKind, StepUpdate, StoredStep
from rowlock.workflow.branch import Branch, CallSite, path_of

# Records that no call of the code stands for.
_DECISIONS = frozenset({"start", "failure", "undo"})

_REMEDY = (
    "Deploy the code that it began with, or give the changed code a new version= and keep the old one, or guard the "
    "change with ctx.patched(…)."
)


class History:
    """The record of one workflow."""

    def __init__(self, steps: Iterable[StoredStep] = ()) -> None:
        self._steps = {step.key: step for step in steps}
        calls = [step for step in self._steps.values() if step.kind not in _DECISIONS]
        self._at = {(path_of(step.key), step.position): step for step in calls}
        self._last: dict[str, int] = {}
        for path, position in self._at:
            self._last[path] = max(position, self._last.get(path, 0))
        self._unasked = {step.key: step for step in calls if not path_of(step.key)}

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def start(self) -> StoredStep | None:
        """The state carried over when it restarted."""
        return self._steps.get("start")

    @property
    def restarts(self) -> int:
        """The number of its restarts."""
        return 0 if self.start is None else self.start.attempts + 1

    @property
    def failure(self) -> StoredStep | None:
        """The decision that it has failed, if it was made."""
        return self._steps.get("failure")

    def open_children(self) -> list[str]:
        """The jobs of children that have not ended, as far as is known."""
        return [step.child for step in self._steps.values() if step.child is not None and step.state == "open"]

    def closes(self, keys: Iterable[str]) -> list[StepUpdate]:
        """What closes those of these sleeps and signals that are open: they would wake and ask for nothing."""
        steps = [self._steps[key] for key in sorted(keys) if key in self._steps]
        return [
            StepUpdate(step.key, step.position, step.kind, "closed", step.input)
            for step in steps
            if step.state == "open"
        ]

    def find(self, place: CallSite, kind: StepKind, input: str | None) -> StoredStep | None:  # noqa: A002  as the table says
        """The record of a call; None for one that is new. WorkflowChanged if the record has something else there."""
        step = self._steps.get(place.key)
        if step is None:
            if (other := self._at.get((place.path, place.position))) is not None:
                raise _changed(place, f"the code calls {kind} {place.key!r}", f"the record has {_written_state(other)}")
            return None
        if step.kind != kind or step.position != place.position:
            raise _changed(
                place,
                f"the code calls {kind} {place.key!r} as call {place.position}",
                f"the record has {_written_state(step)} as call {step.position}",
            )
        if step.input is not None and input is not None and step.input != input:
            raise _changed(
                place,
                f"the code calls {kind} {place.key!r} with {_short(input)}",
                f"the record has it with {_short(step.input)}",
            )
        self._unasked.pop(place.key, None)
        return step

    def has(self, branch: Branch, name: str) -> bool:
        """Whether the next call of a branch is remembered as one of that name."""
        step = self._steps.get(branch.peek(name))
        return step is not None and step.position == branch.position + 1

    def knows(self, key: str) -> bool:
        """Whether a step is remembered, however far it has come."""
        return key in self._steps

    def goes_on(self, path: str, position: int) -> bool:
        """Whether the record of a branch has a call at this position, or after it."""
        return self._last.get(path, 0) >= position

    def check_end(self, does: str) -> None:
        """This is the last that the code does: WorkflowChanged if the record goes on."""
        if self._unasked:
            step = min(self._unasked.values(), key=lambda step: step.position)
            place = CallSite(step.key, "", step.position)
            raise _changed(place, does, f"the record goes on with {_written_state(step)}")


def misfit(key: str, error: BaseException) -> WorkflowChanged:
    """What is recorded of a call does not fit what the code says that it returns."""
    return WorkflowChanged(
        f"changed code: what {key!r} has returned is recorded, and does not fit what the code expects of it now: "
        f"{describe(error).first_line}. {_REMEDY}"
    )


def waits_for_what_it_cut_off(step: StoredStep) -> WorkflowChanged:
    """The code waits for nothing but steps that it had cut off: they do not run again."""
    return WorkflowChanged(
        f"changed code: the code waits for {step.kind} {step.key!r}, which it has cut off, and for nothing else. "
        + _REMEDY
    )


def _changed(place: CallSite, code: str, record: str) -> WorkflowChanged:
    where = f"call {place.position}" + (f" of branch {place.path!r}" if place.path else "")
    return WorkflowChanged(f"changed code: at {where} {code}, and {record}. {_REMEDY}")


def _written_state(step: StoredStep) -> str:
    return f"{step.kind} {step.key!r} ({step.state})"


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"
