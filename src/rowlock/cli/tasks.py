"""`rowlock tasks`: list, pause, resume."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from rowlock.cli.shared import text
from rowlock.cli.shared.options import AppChoice, app_options, debug_option, open_app
from rowlock.cli.shared.output import EXIT_CODES_OF_CHANGES, EXIT_CODES_OF_READS, json_option, masked, print_json
from rowlock.cli.shared.pause_options import PauseOptions, pause_end, pause_named, pause_options, resume_named
from rowlock.model.pause import Pause
from rowlock.model.stats.stats import Stats, TaskStats


@click.group(epilog=EXIT_CODES_OF_CHANGES)
def tasks() -> None:
    """Look at tasks, pause and resume them."""


@tasks.command("list", epilog=EXIT_CODES_OF_READS)
@json_option
@app_options(required=False)
@debug_option
def list_tasks(choice: AppChoice, *, as_json: bool) -> None:
    """List tasks: how fast they run, how long they take, how many have failed."""
    with open_app(choice) as app:
        stats = app.stats()
        pauses = {str(pause.task): pause for pause in masked(app.tasks.pauses())}
    if as_json:
        print_json({"tasks": [_task_facts(name, stats, pauses.get(name)) for name in stats.tasks]})
    elif stats.tasks:
        show_tasks(stats.tasks, pauses, stats.at)
    else:
        click.echo("no task has run, failed or been paused recently", err=True)


def _task_facts(name: str, stats: Stats, pause: Pause | None) -> dict[str, Any]:
    """One task for JSON."""
    return {"name": name, **stats.to_dict()["tasks"][name], "pause": pause and pause.to_dict()}


def show_tasks(tasks: Mapping[str, TaskStats], pauses: Mapping[str, Pause], now: datetime) -> None:
    """The table of tasks."""
    from rowlock.cli.shared.tables import Column, print_table  # noqa: PLC0415  draws

    columns = [
        Column("task", least=20),
        Column("ended", rank=2, right=True),
        Column("retried", rank=7, right=True),
        Column("failed", right=True),
        Column("p50", least=8, rank=3, right=True),
        Column("p95", least=8, rank=6, right=True),
        Column("p99", least=8, rank=4, right=True),
        Column("max", least=8, rank=5, right=True),
        Column("paused", least=12, rank=1),
    ]
    print_table(columns, (_row(name, task, pauses.get(name), now) for name, task in sorted(tasks.items())))


def _row(name: str, task: TaskStats, pause: Pause | None, now: datetime) -> tuple[str, ...]:
    took = task.durations
    spans = ("", "", "", "") if took is None else tuple(map(text.known_span, (took.p50, took.p95, took.p99, took.max)))
    return (
        name,
        text.rate(task.rates, "completed"),
        text.rate(task.rates, "retried"),
        text.known_count(task.failed),
        *spans,
        "" if pause is None else f"by {text.line(pause.by)}, {pause_end(pause, now)}",
    )


@tasks.command(epilog=EXIT_CODES_OF_READS)
@pause_options(pauses=True)
def pause(typed: PauseOptions) -> None:
    """Pause a task: run none of its jobs, whatever their queue; other tasks go on."""
    pause_named(typed, "task")


@tasks.command(epilog=EXIT_CODES_OF_CHANGES)
@pause_options(pauses=False)
def resume(typed: PauseOptions) -> None:
    """Resume a paused task."""
    resume_named(typed, "task")
