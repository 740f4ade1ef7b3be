"""`rowlock workflows show`: a timeline as a tree of steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from rowlock.cli.shared import text
from rowlock.cli.shared.ids import JOB_ID, whole_id
from rowlock.cli.shared.options import AppChoice, app_options, database_time, debug_option, open_app
from rowlock.cli.shared.output import (
    exit_codes,
    json_option,
    masked,
    print_json,
    reveal_option,
)
from rowlock.model.names import versioned
from rowlock.model.record import JobRecord
from rowlock.model.workflow.timeline import Timeline, TimelineBranch, TimelineStep

if TYPE_CHECKING:
    from rich.tree import Tree


@click.command(epilog=exit_codes("there is no such workflow"))
@click.argument("job_id", metavar="ID", type=JOB_ID)
@click.option("--values", is_flag=True, help="Also what each step was given, and what it came to.")
@reveal_option
@json_option
@app_options(required=False)
@debug_option
def show(choice: AppChoice, *, job_id: UUID | str, values: bool, reveal: bool, as_json: bool) -> None:
    """Show what a workflow has done, step by step, and what it waits for.

    Steps stand in the order in which they were started, those of each branch of the code below that. With their
    durations, tries, time-outs, children, and what was undone; then signals that nobody has taken, and, where the code
    does not match what the workflow remembers, the difference.
    """
    with open_app(choice) as app:
        job_id = whole_id(app, job_id)
        timeline = masked(app.workflows.show(job_id), reveal=reveal)
        now = database_time(app)
    if as_json:
        print_json(timeline.to_dict())
    else:
        _show(timeline, now, values=values)


def _show(timeline: Timeline, now: datetime, *, values: bool) -> None:
    from rowlock.cli.shared.tables import Column, print_block, print_facts, print_table  # noqa: PLC0415  draws

    job = timeline.job
    print_facts(_facts(job, now))
    if job.waits_for == "code" and job.reason:
        print_block("it cannot go on", job.reason)
    _draw(timeline, now, values=values)
    if timeline.signals:
        columns = [Column("signal", least=10), Column("sent", least=10), Column("key", least=8, rank=2)]
        rows = [(signal.name, text.age(signal.sent_at, now), signal.key) for signal in timeline.signals]
        print_table(columns, rows, title="\nsignals that nobody has taken")
    if job.errors and job.state != "succeeded":
        print_block("last error", f"{job.errors[-1].type}: {job.errors[-1].message}")


def _facts(job: JobRecord, now: datetime) -> dict[str, object]:
    state = job.state if job.cancel_at is None else f"{job.state}, cancelling"
    took = None if job.ended_at is None else text.span(job.ended_at - job.created_at)
    due = None if job.ended or job.run_at <= now else job.run_at
    return {
        "id": job.id,
        "workflow": text.line(versioned(job.task, job.version)),
        "state": state if job.waits_for is None else f"{state} for {job.waits_for}",
        "reason": None if job.waits_for == "code" else job.reason and text.line(job.reason),
        "key": job.key and text.line(job.key),
        "queue": text.line(job.queue),
        "parent": job.parent,
        "progress": job.progress and f"{job.progress.share:.0%} {job.progress.note or ''}".rstrip(),
        "says": job.workflow_state and text.line(text.compact(job.workflow_state)),
        "created": f"{text.instant(job.created_at)} ({text.age(job.created_at, now)})",
        "due": due and f"{text.instant(due)} ({text.age(due, now)})",
        "ended": job.ended_at and f"{text.instant(job.ended_at)} ({text.age(job.ended_at, now)}), after {took}",
    }


_MARKS = {
    "done": ("✓", "green"),
    "failed": ("✗", "red"),
    "open": ("…", "yellow"),
    "retrying": ("↻", "yellow"),
    "closed": ("·", "dim"),
}


def _draw(timeline: Timeline, now: datetime, *, values: bool) -> None:
    """Print the tree."""
    from rich.text import Text  # noqa: PLC0415  draws
    from rich.tree import Tree  # noqa: PLC0415

    from rowlock.cli.shared.tables import console  # noqa: PLC0415

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
        notes = "".join(f"  {part}" for part in _notes(step, timeline, now))
        below = tree.add(Text.assemble((f"{mark} ", colour), text.line(step.key), (_took(step), "dim"), notes))
        for name, value in _values(step) if values else ():
            below.add(Text(f"{name}: {text.line(text.compact(value))}", style="dim"))


def _mark(step: TimelineStep, timeline: Timeline) -> tuple[str, str]:
    if step.kind == "failure":
        return _MARKS["failed"]
    return _MARKS[step.state] if timeline.job.ended_at is None or not step.is_open else ("·", "dim")


def _took(step: TimelineStep | TimelineBranch) -> str:
    return "" if step.duration is None else f"  {text.span(step.duration)}"


def _notes(step: TimelineStep, timeline: Timeline, now: datetime) -> Iterator[str]:
    """What matters about a step of this kind in this state."""
    if step.kind != "step":
        yield {"failure": "the workflow has failed", "start": "started over"}.get(step.kind, step.kind)
    if step.kind == "failure" and isinstance(step.result, dict) and step.result.get("step"):
        yield f"of {text.line(step.result['step'])}"
    if step.attempts and step.kind != "start":
        yield text.count(step.attempts, "failed try", "failed tries")
    if step.is_open:
        yield _wait(step, timeline, now)
    if step.child is not None:
        yield _child(step, timeline)
    if step.is_open and step.form is not None:
        yield f"form {text.line(text.compact(step.form))}"
    if step.state == "failed" or (step.state == "retrying" and step.error is not None):
        yield text.line(_error(step.error))


def _wait(step: TimelineStep, timeline: Timeline, now: datetime) -> str:
    if timeline.job.ended_at is not None:
        return "not waited for any more"
    if step.until is None:
        return f"since {text.span(now - step.started_at)}"
    what = "next try" if step.state == "retrying" else "time-out" if step.kind == "signal" else "until"
    return f"{what} {text.age(step.until, now)}"


def _child(step: TimelineStep, timeline: Timeline) -> str:
    child = timeline.children.get(step.child) if step.child is not None else None
    return str(step.child) if child is None else f"{child.id} {child.state} on {text.line(child.queue)}"


def _error(error: Any) -> str:  # noqa: ANN401  whatever is stored
    """The type and the message; of a child, those of what it failed of."""
    if not isinstance(error, dict):
        return "failed"
    failure = error.get("failure") or error
    if "type" not in failure:
        return str(error.get("reason") or error.get("outcome") or "failed")
    return f"{failure['type']}: {failure.get('message', '')}".removesuffix(": ")


def _values(step: TimelineStep) -> Iterator[tuple[str, Any]]:
    if step.input is not None:
        yield "given", step.input
    if step.state == "done" and step.kind not in {"failure", "undo", "patched"} and step.result is not None:
        yield "result", step.result
