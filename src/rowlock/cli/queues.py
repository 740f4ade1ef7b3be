"""`rowlock queues`: list, show, pause, resume."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from rowlock.cli.shared import text
from rowlock.cli.shared.options import AppChoice, app_options, debug_option, open_app
from rowlock.cli.shared.output import (
    EXIT_CODES_OF_CHANGES,
    EXIT_CODES_OF_READS,
    exit_codes,
    json_option,
    masked,
    nothing_matched,
    print_json,
)
from rowlock.cli.shared.pause_options import PauseOptions, pause_end, pause_named, pause_options, resume_named
from rowlock.cli.workers import show_workers, worker_facts
from rowlock.model.pause import Pause
from rowlock.model.stats.stats import Durations, QueueStats, Stats


@click.group(epilog=EXIT_CODES_OF_CHANGES)
def queues() -> None:
    """Look at queues, pause and resume them."""


@queues.command("list", epilog=EXIT_CODES_OF_READS)
@json_option
@app_options(required=False)
@debug_option
def list_queues(choice: AppChoice, *, as_json: bool) -> None:
    """List queues: what is due, delayed, running and waiting in them, how old the oldest is, and what gets done.

    `wait` is how long jobs that workers claimed in the last hour had been due: p50 and p95.
    """
    with open_app(choice) as app:
        stats = app.stats()
        pauses = {str(pause.queue): pause for pause in masked(app.queues.pauses())}
    if as_json:
        print_json({"queues": [queue_facts(name, stats, pauses.get(name)) for name in stats.queues]})
    elif stats.queues:
        show_queues(stats.queues, pauses, stats.at)
    else:
        click.echo("no queue has jobs, workers or settings", err=True)


def queue_facts(name: str, stats: Stats, pause: Pause | None) -> dict[str, Any]:
    """One queue for JSON."""
    return {"name": name, **stats.to_dict()["queues"][name], "pause": pause and pause.to_dict()}


def show_queues(queues: Mapping[str, QueueStats], pauses: Mapping[str, Pause], now: datetime) -> None:
    """The table of queues."""
    from rowlock.cli.shared.tables import Column, print_table  # noqa: PLC0415  draws

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
    print_table(columns, (_row(name, queue, pauses.get(name), now) for name, queue in sorted(queues.items())))


def _row(name: str, queue: QueueStats, pause: Pause | None, now: datetime) -> tuple[str, ...]:
    return (
        name,
        text.known_count(queue.runnable),
        text.known_span(queue.oldest),
        text.known_count(queue.running),
        text.known_count(queue.delayed),
        _waiting(queue),
        *((text.known_span(queue.waits.p50), text.known_span(queue.waits.p95)) if queue.waits else ("", "")),
        text.rate(queue.rates, "completed"),
        text.rate(queue.rates, "retried"),
        text.rate(queue.rates, "failed"),
        "" if pause is None else pause_end(pause, now),
    )


def _waiting(queue: QueueStats) -> str:
    """How many wait, and what for; and how many workflows are parked."""
    if queue.waiting is None:
        return text.UNKNOWN
    kinds = [f"{text.known_count(number)} for {cause}" for cause, number in sorted(queue.waiting.items())]
    parked = [f"{text.known_count(queue.parked)} parked"] if queue.parked and queue.parked.value else []
    return ", ".join([*kinds, *parked])


def _waits(waits: Durations) -> str:
    """How long its jobs had been due when they were claimed."""
    spans = (text.span(span) for span in (waits.p50, waits.p95, waits.max))
    return "p50 {}, p95 {}, at most {}, in the last hour".format(*spans)


@queues.command(epilog=exit_codes("there is no such queue"))
@click.argument("name")
@json_option
@app_options(required=False)
@debug_option
def show(choice: AppChoice, *, name: str, as_json: bool) -> None:
    """Show one queue, whether and why it is paused, and the workers that look into it."""
    with open_app(choice) as app:
        stats = app.stats()
        pause = masked(next((pause for pause in app.queues.pauses() if pause.queue == name), None))
    if name not in stats.queues:
        nothing_matched(f"no job, worker, setting or pause names a queue {text.line(repr(name))}")
    workers = [worker for worker in stats.fleet.workers or () if name in worker.queues]
    if as_json:
        print_json({"queue": queue_facts(name, stats, pause), "workers": [worker_facts(worker) for worker in workers]})
        return
    _show(name, stats, pause)
    if workers:
        show_workers(workers, stats.at, title="\nworkers")
    else:
        click.echo("\nno worker looks into it")


def _show(name: str, stats: Stats, pause: Pause | None) -> None:
    from rowlock.cli.shared.tables import print_facts  # noqa: PLC0415  draws

    queue = stats.queues[name]
    print_facts(
        {
            "queue": text.line(name),
            "due": text.known_count(queue.runnable),
            "oldest": text.known_span(queue.oldest),
            "delayed": text.known_count(queue.delayed),
            "running": text.known_count(queue.running),
            "waiting": _waiting(queue),
            "wait": queue.waits and _waits(queue.waits),
            **{what: text.rate(queue.rates, what) for what in ("claimed", "completed", "retried", "failed")},
            "paused": pause and pause_end(pause, stats.at),
            "by": pause and f"{text.line(pause.by)}, {text.age(pause.at, stats.at)}",
            "why": pause and text.line(pause.why or ""),
        }
    )


@queues.command(epilog=EXIT_CODES_OF_READS)
@pause_options(pauses=True)
def pause(typed: PauseOptions) -> None:
    """Pause a queue: claim none of its jobs; running ones go on. New jobs are taken in and wait."""
    pause_named(typed, "queue")


@queues.command(epilog=EXIT_CODES_OF_CHANGES)
@pause_options(pauses=False)
def resume(typed: PauseOptions) -> None:
    """Resume a paused queue."""
    resume_named(typed, "queue")
