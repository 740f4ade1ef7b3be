"""Served: which queues the app's tasks are on, and whether anybody looks into them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from rowlock.db.link import Link
from rowlock.model.handler import Handler
from rowlock.store import workers
from rowlock.worker.lanes import Queues

log = logging.getLogger("rowlock.worker")

_MOST_TASKS = 3  # that a line names for a queue


def places_of(handlers: Mapping[str, Handler]) -> dict[str, list[str]]:
    """The queues of these tasks, each with the names of its tasks."""
    places: dict[str, list[str]] = {}
    for handler in handlers.values():
        tasks = places.setdefault(handler.spec.queue, [])
        if handler.spec.name not in tasks:  # under an alias, or as another version
            tasks.append(handler.spec.name)
    return places


async def tell(handlers: Mapping[str, Handler], mine: Queues, link: Link, *, worker: str) -> None:
    """Say at the start which queues of the app's tasks this worker leaves alone; a warning if nobody serves them."""
    places = places_of(handlers)
    others = sorted(places.keys() - set(mine.names))
    if not others:
        return
    served = set(await link.run(workers.serving(queues=others, but=worker)))
    if elsewhere := [queue for queue in others if queue in served]:
        log.info("other workers look into %s, where tasks of this app are, too", ", ".join(elsewhere))
    if nowhere := [queue for queue in others if queue not in served]:
        log.warning(
            "no worker looks into %s: jobs there wait. Give this worker --queues %s, or --queues '*' for all queues",
            "; ".join(f"{queue}, where {_listed(places[queue])} {_is(places[queue])}" for queue in nowhere),
            ",".join([*mine.names, *nowhere]),
        )


def _listed(tasks: list[str]) -> str:
    shown = ", ".join(tasks[:_MOST_TASKS])
    return shown if len(tasks) <= _MOST_TASKS else f"{shown} and {len(tasks) - _MOST_TASKS} more tasks"


def _is(tasks: list[str]) -> str:
    return "is" if len(tasks) == 1 else "are"
