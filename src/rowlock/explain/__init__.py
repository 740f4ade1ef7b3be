"""Explain: why a job is not running, or what became of it.

`store/explain` reads the facts about the job; the causes here, in the order in which they matter, put them into words.
The first that holds is the explanation, the others are listed in `also`: at three in the morning there are often two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from rowlock.explain.ended import how_it_ended
from rowlock.explain.missing import why_it_is_not_there, why_nobody_can_look
from rowlock.explain.parked import beside
from rowlock.explain.pending import why_it_is_not_running
from rowlock.explain.phrases import instant_of
from rowlock.explain.running import how_it_runs
from rowlock.model.explain_facts import Situation
from rowlock.model.explanation import Cause, Explanation
from rowlock.model.record import JobRecord
from rowlock.model.spec import Handler, Keep
from rowlock.store import explain as store
from rowlock.store.query import Conversation

HandlerLookup = Callable[[str, int | None], Handler | None]
"""The code that this process has for a task, or for a version of a workflow, if it has any."""


def explain_job(
    job_id: UUID, *, known: HandlerLookup, keep: Keep, uncommitted: bool = False
) -> Conversation[Explanation]:
    """Explain a job. `uncommitted`: whoever enqueued it has not committed yet, as far as we know."""
    situation = yield from store.gather_facts(job_id)
    return explanation_of(situation, known=known, keep=keep, uncommitted=uncommitted)


def explanation_of(situation: Situation, *, known: HandlerLookup, keep: Keep, uncommitted: bool = False) -> Explanation:
    """The explanation of a situation."""
    record = situation.record
    if situation.locked is not None:
        causes = [why_nobody_can_look(situation.locked)]
    elif record is None:
        causes = [why_it_is_not_there(situation, keep, uncommitted=uncommitted)]
    else:
        causes = list(_causes(situation, record, known(record.task, record.version)))
    cause, *others = causes
    return Explanation(
        job=situation.job,
        state=None if record is None else record.state,
        code=cause.code,
        says=cause.says,
        do=cause.do,
        facts={**cause.facts, **({} if record is None else dict(_common(record)))},
        also=(*(other.says for other in others), *_asides(situation)),
        unknown=situation.unknown,
        at=situation.at,
    )


def _causes(situation: Situation, record: JobRecord, handler: Handler | None) -> Iterator[Cause]:
    match record.state:
        case "running":
            yield from how_it_runs(situation, record)
        case "ready" | "waiting" | "parked":
            yield from why_it_is_not_running(situation, record, handler)
        case _:
            yield how_it_ended(situation, record)


def _common(record: JobRecord) -> Iterator[tuple[str, Any]]:
    """The facts that every explanation has."""
    yield "task", record.task
    yield "queue", record.queue
    if record.key is not None:
        yield "key", record.key
    yield from _origin(record).items()


def _origin(record: JobRecord) -> dict[str, str]:
    """The schedule that made it, and the slot that it is the job of."""
    tagged = dict(tag.split(":", 1) for tag in record.tags if tag.startswith(("schedule:", "slot:")))
    return tagged if "schedule" in tagged else {}


def _asides(situation: Situation) -> Iterator[str]:
    """Sentences on things that are no cause, but worth knowing."""
    record, holder = situation.record, situation.holder
    if record is None:
        return
    yield from beside(situation, record)
    if origin := _origin(record):
        slot = f" for its slot {origin['slot']}" if "slot" in origin else ""
        yield f"Schedule {origin['schedule']!r} made it{slot}."
    if holder is not None and holder.job != record.id:
        yield f"Its key {record.key!r} belongs to job {holder.job} now, so a retry would pass it over."
    elif holder is not None and record.ended:
        until = "" if holder.until is None else f" until {instant_of(holder.until, situation.at)}"
        yield f"It still has its key {record.key!r}{until}."
