"""`rowlock tasks list`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import click

from rowlock.cli import figures, words
from rowlock.cli.masking import masked
from rowlock.cli.opened import opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_LOOKS, json_option, print_json
from rowlock.cli.pausing import ends
from rowlock.model.pause import Pause
from rowlock.model.stats.stats import TaskStats


@click.command("list", epilog=EXIT_CODES_OF_LOOKS)
@json_option
@app_options(required=False)
@debug_option
def list_tasks(choice: Choice, *, as_json: bool) -> None:
    """List tasks: how fast they run, how long they take, how many have failed."""
    with opened(choice) as app:
        stats = app.stats()
        pauses = {pause.task: pause for pause in masked(app.pauses()) if pause.task is not None}
    if as_json:
        told = stats.to_dict()["tasks"]
        tasks = [{"name": name, **told[name], "pause": _plain(pauses.get(name))} for name in stats.tasks]
        print_json({"tasks": tasks})
    elif stats.tasks:
        show_tasks(stats.tasks, pauses, stats.at)
    else:
        click.echo("no task has run, failed or been paused lately", err=True)


def _plain(pause: Pause | None) -> object:
    return pause and pause.to_dict()


def show_tasks(tasks: Mapping[str, TaskStats], pauses: Mapping[str, Pause], now: datetime) -> None:
    """The table of tasks."""
    from rowlock.cli.tables import Column, show  # noqa: PLC0415  draws

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
    show(columns, (_row(name, task, pauses.get(name), now) for name, task in sorted(tasks.items())))


def _row(name: str, task: TaskStats, pause: Pause | None, now: datetime) -> tuple[str, ...]:
    took = task.durations
    spans = ("", "", "", "") if took is None else tuple(map(figures.lasting, (took.p50, took.p95, took.p99, took.max)))
    return (
        name,
        figures.rate(task.rates, "completed"),
        figures.rate(task.rates, "retried"),
        figures.counted(task.failed),
        *spans,
        "" if pause is None else f"by {words.line(pause.by)}, {ends(pause, now)}",
    )
