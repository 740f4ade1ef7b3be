"""`rowlock workflows show`."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import click

from rowlock.cli import words
from rowlock.cli.ids import JOB_ID, whole_id
from rowlock.cli.masking import masked, reveal_option
from rowlock.cli.opened import database_time, opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_VERBS, json_option, print_json
from rowlock.cli.workflows.drawing import draw
from rowlock.model.names import versioned
from rowlock.model.record import JobRecord
from rowlock.model.workflow.timeline import Timeline


@click.command(epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "there is no such workflow"))
@click.argument("job_id", metavar="ID", type=JOB_ID)
@click.option("--values", is_flag=True, help="Also what each step was given, and what it came to.")
@reveal_option
@json_option
@app_options(required=False)
@debug_option
def show(choice: Choice, *, job_id: UUID | str, values: bool, reveal: bool, as_json: bool) -> None:
    """Show what a workflow has done, step by step, and what it waits for.

    Steps stand in the order in which they were started, those of each branch of the code below that. With their
    durations, tries, time-outs, children, and what was undone; then signals that nobody has taken, and, where the code
    does not match what the workflow remembers, the difference.
    """
    with opened(choice) as app:
        job_id = whole_id(app, job_id)
        timeline = masked(app.workflows.show(job_id), reveal=reveal)
        now = database_time(app)
    if as_json:
        print_json(timeline.to_dict())
    else:
        _show(timeline, now, values=values)


def _show(timeline: Timeline, now: datetime, *, values: bool) -> None:
    from rowlock.cli.tables import Column, block, facts, show  # noqa: PLC0415  draws

    job = timeline.job
    facts(_facts(job, now))
    if job.waits_for == "code" and job.reason:
        block("it cannot go on", job.reason)
    draw(timeline, now, values=values)
    if timeline.signals:
        columns = [Column("signal", least=10), Column("sent", least=10), Column("key", least=8, rank=2)]
        rows = [(signal.name, words.age(signal.sent_at, now), signal.key) for signal in timeline.signals]
        show(columns, rows, title="\nsignals that nobody has taken")
    if job.errors and job.state != "succeeded":
        block("last error", f"{job.errors[-1].type}: {job.errors[-1].message}")


def _facts(job: JobRecord, now: datetime) -> dict[str, object]:
    state = job.state if job.cancel_at is None else f"{job.state}, cancelling"
    took = None if job.ended_at is None else words.span(job.ended_at - job.created_at)
    due = None if job.ended or job.run_at <= now else job.run_at
    return {
        "id": job.id,
        "workflow": words.line(versioned(job.task, job.version)),
        "state": state if job.waits_for is None else f"{state} for {job.waits_for}",
        "reason": None if job.waits_for == "code" else job.reason and words.line(job.reason),
        "key": job.key and words.line(job.key),
        "queue": words.line(job.queue),
        "parent": job.parent,
        "progress": job.progress and f"{job.progress.share:.0%} {job.progress.note or ''}".rstrip(),
        "says": job.workflow_state and words.line(words.compact(job.workflow_state)),
        "created": f"{words.instant(job.created_at)} ({words.age(job.created_at, now)})",
        "due": due and f"{words.instant(due)} ({words.age(due, now)})",
        "ended": job.ended_at and f"{words.instant(job.ended_at)} ({words.age(job.ended_at, now)}), after {took}",
    }
