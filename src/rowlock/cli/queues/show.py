"""`rowlock queues show`."""

from __future__ import annotations

import click

from rowlock.cli import figures, words
from rowlock.cli.masking import masked
from rowlock.cli.opened import opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_VERBS, json_option, nothing_matched, print_json
from rowlock.cli.pausing import ends
from rowlock.cli.queues.list import queue_facts, waited, waiting
from rowlock.cli.workers import show_workers, worker_facts
from rowlock.model.pause import Pause
from rowlock.model.stats.stats import Stats


@click.command(epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "there is no such queue"))
@click.argument("name")
@json_option
@app_options(required=False)
@debug_option
def show(choice: Choice, *, name: str, as_json: bool) -> None:
    """Show one queue, whether and why it is paused, and the workers that look into it."""
    with opened(choice) as app:
        stats = app.stats()
        pause = masked(next((pause for pause in app.pauses() if pause.queue == name), None))
    if name not in stats.queues:
        nothing_matched(f"no job, worker, setting or pause names a queue {words.line(repr(name))}")
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
    from rowlock.cli.tables import facts  # noqa: PLC0415  draws

    queue = stats.queues[name]
    facts(
        {
            "queue": words.line(name),
            "due": figures.counted(queue.runnable),
            "oldest": figures.lasting(queue.oldest),
            "delayed": figures.counted(queue.delayed),
            "running": figures.counted(queue.running),
            "waiting": waiting(queue),
            "wait": queue.waits and waited(queue.waits),
            **{what: figures.rate(queue.rates, what) for what in ("claimed", "completed", "retried", "failed")},
            "paused": pause and ends(pause, stats.at),
            "by": pause and f"{words.line(pause.by)}, {words.age(pause.at, stats.at)}",
            "why": pause and words.line(pause.why or ""),
        }
    )
