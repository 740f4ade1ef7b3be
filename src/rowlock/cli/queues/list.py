"""`rowlock queues list`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from rowlock.cli import figures, words
from rowlock.cli.masking import masked
from rowlock.cli.opened import opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_LOOKS, json_option, print_json
from rowlock.cli.pausing import ends
from rowlock.model.pause import Pause
from rowlock.model.stats.stats import Durations, QueueStats, Stats


@click.command("list", epilog=EXIT_CODES_OF_LOOKS)
@json_option
@app_options(required=False)
@debug_option
def list_queues(choice: Choice, *, as_json: bool) -> None:
    """List queues: what is due, delayed, running and waiting in them, how old the oldest is, and what gets done.

    `wait` is how long jobs that workers claimed in the last hour had been due: half of them, and all but a twentieth.
    """
    with opened(choice) as app:
        stats = app.stats()
        pauses = {pause.queue: pause for pause in masked(app.pauses()) if pause.queue is not None}
    if as_json:
        print_json({"queues": [queue_facts(name, stats, pauses.get(name)) for name in stats.queues]})
    elif stats.queues:
        show_queues(stats.queues, pauses, stats.at)
    else:
        click.echo("no queue has jobs, workers or settings", err=True)


def queue_facts(name: str, stats: Stats, pause: Pause | None) -> dict[str, Any]:
    """One queue for machines."""
    return {"name": name, **stats.to_dict()["queues"][name], "pause": pause and pause.to_dict()}


def show_queues(queues: Mapping[str, QueueStats], pauses: Mapping[str, Pause], now: datetime) -> None:
    """The table of queues."""
    from rowlock.cli.tables import Column, show  # noqa: PLC0415  draws

    columns = [
        Column("queue", least=20),
        Column("due", right=True),
        Column("oldest", right=True),
        Column("running", right=True),
        Column("delayed", rank=2, right=True),
        Column("waiting", least=10, rank=3),
        Column("wait p50", least=8, rank=7, right=True),
        Column("wait p95", least=8, rank=5, right=True),
        Column("ended", rank=4, right=True),
        Column("retried", rank=8, right=True),
        Column("failed", rank=6, right=True),
        Column("paused", least=12, rank=1),
    ]
    show(columns, (_row(name, queue, pauses.get(name), now) for name, queue in sorted(queues.items())))


def _row(name: str, queue: QueueStats, pause: Pause | None, now: datetime) -> tuple[str, ...]:
    return (
        name,
        figures.counted(queue.runnable),
        figures.lasting(queue.oldest),
        figures.counted(queue.running),
        figures.counted(queue.delayed),
        waiting(queue),
        *((figures.lasting(queue.waits.p50), figures.lasting(queue.waits.p95)) if queue.waits else ("", "")),
        figures.rate(queue.rates, "completed"),
        figures.rate(queue.rates, "retried"),
        figures.rate(queue.rates, "failed"),
        "" if pause is None else ends(pause, now),
    )


def waiting(queue: QueueStats) -> str:
    """How many wait, and what for; and how many workflows are parked."""
    if queue.waiting is None:
        return figures.UNKNOWN
    kinds = [f"{figures.counted(number)} for {cause}" for cause, number in sorted(queue.waiting.items())]
    parked = [f"{figures.counted(queue.parked)} parked"] if queue.parked and queue.parked.value else []
    return ", ".join([*kinds, *parked])


def waited(waits: Durations) -> str:
    """How long its jobs had been due when they were claimed."""
    spans = (words.span(span) for span in (waits.p50, waits.p95, waits.max))
    return "p50 {}, p95 {}, at most {}, in the last hour".format(*spans)
