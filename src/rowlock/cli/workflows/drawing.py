"""A timeline as a tree: what a workflow has done, how long each step took, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rowlock.cli import words
from rowlock.model.workflow.timeline import Timeline, TimelineBranch, TimelineStep

if TYPE_CHECKING:
    from rich.tree import Tree

_MARKS = {"done": ("✓", "green"), "failed": ("✗", "red"), "open": ("…", "yellow"), "retrying": ("↻", "yellow")}


def draw(timeline: Timeline, now: datetime, *, values: bool) -> None:
    """Print the tree."""
    from rich.text import Text  # noqa: PLC0415  draws
    from rich.tree import Tree  # noqa: PLC0415

    from rowlock.cli.tables import console  # noqa: PLC0415

    root = Tree(Text("steps" if timeline.steps else "it has no steps yet", style="bold"), guide_style="dim")
    _grow(root, timeline.steps, timeline, now, values=values)
    out = console()
    out.print()
    out.print(root, soft_wrap=True)


def _grow(
    tree: Tree, steps: Iterable[TimelineStep | TimelineBranch], timeline: Timeline, now: datetime, *, values: bool
) -> None:
    from rich.text import Text  # noqa: PLC0415  draws

    for step in steps:
        if isinstance(step, TimelineBranch):
            head = Text.assemble(("┬ ", "dim"), f"branch {step.key}", (_took(step), "dim"))
            _grow(tree.add(head), step.steps, timeline, now, values=values)
            continue
        mark, colour = _mark(step, timeline)
        said = "".join(f"  {part}" for part in _said(step, timeline, now))
        below = tree.add(Text.assemble((f"{mark} ", colour), words.line(step.key), (_took(step), "dim"), said))
        for name, value in _values(step) if values else ():
            below.add(Text(f"{name}: {words.line(words.compact(value))}", style="dim"))


def _mark(step: TimelineStep, timeline: Timeline) -> tuple[str, str]:
    if step.kind == "failure":
        return _MARKS["failed"]
    return _MARKS[step.state] if timeline.job.ended_at is None or not step.is_open else ("·", "dim")


def _took(step: TimelineStep | TimelineBranch) -> str:
    return "" if step.duration is None else f"  {words.span(step.duration)}"


def _said(step: TimelineStep, timeline: Timeline, now: datetime) -> Iterator[str]:
    """What one wants to know of a step of this kind and in this state."""
    if step.kind != "step":
        yield {"failure": "the workflow has failed", "start": "begun anew"}.get(step.kind, step.kind)
    if step.kind == "failure" and isinstance(step.result, dict) and step.result.get("step"):
        yield f"of {words.line(step.result['step'])}"
    if step.attempts and step.kind != "start":
        yield words.count(step.attempts, "failed try", "failed tries")
    if step.is_open:
        yield _wait(step, timeline, now)
    if step.child is not None:
        yield _child(step, timeline)
    if step.is_open and step.form is not None:
        yield f"form {words.line(words.compact(step.form))}"
    if step.state == "failed" or (step.state == "retrying" and step.error is not None):
        yield words.line(_error(step.error))


def _wait(step: TimelineStep, timeline: Timeline, now: datetime) -> str:
    if timeline.job.ended_at is not None:
        return "not waited for any more"
    if step.until is None:
        return f"since {words.span(now - step.started_at)}"
    what = "next try" if step.state == "retrying" else "time-out" if step.kind == "signal" else "until"
    return f"{what} {words.age(step.until, now)}"


def _child(step: TimelineStep, timeline: Timeline) -> str:
    child = timeline.children.get(step.child) if step.child is not None else None
    return str(step.child) if child is None else f"{child.id} {child.state} on {words.line(child.queue)}"


def _error(error: Any) -> str:  # noqa: ANN401  whatever is stored
    """The type and the message; of a child, those of what it failed of."""
    if not isinstance(error, dict):
        return "failed"
    told = error.get("failure") or error
    if "type" not in told:
        return str(error.get("reason") or error.get("outcome") or "failed")
    return f"{told['type']}: {told.get('message', '')}".removesuffix(": ")


def _values(step: TimelineStep) -> Iterator[tuple[str, Any]]:
    if step.input is not None:
        yield "given", step.input
    if step.state == "done" and step.kind not in {"failure", "undo", "patched"} and step.result is not None:
        yield "result", step.result
