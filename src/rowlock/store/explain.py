"""Explain queries: a job and the facts about it, bounded however many jobs there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from rowlock.model.explain_facts import (
    Candidate,
    JobLock,
    KeyHolder,
    OpenStep,
    Queueing,
    Situation,
    StepError,
    TableLock,
)
from rowlock.model.names import versioned
from rowlock.model.record import JobRecord, known_moment, read_moment, read_uuid
from rowlock.model.stats.stats import Count
from rowlock.store import events, pauses, queues, schema
from rowlock.store.claim import SUSPECT_FROM
from rowlock.store.doctor import queries
from rowlock.store.find import pages
from rowlock.store.query import Conversation, Query, Row, first, instant, plain_array
from rowlock.store.stats import counts
from rowlock.store.stats.collect import LOCKED, try_query
from rowlock.store.stats.counts import TIMEOUT
from rowlock.store.workflows import records

# What is counted, and how many names and events are looked at.
MOST_AHEAD: Final = 10_000
_MOST_TASKS: Final = 1_000
_MOST_EVENTS: Final = 100
_MOST_STEPS: Final = 20
# The statements see one moment each. A running job whose worker is not on the books has mostly ended in between.
_LOOKS: Final = 3


def candidates(*, queue: str, task: str) -> Query[Candidate]:
    """The workers on the books, as a job of this queue sees them that runs this task, or NAME@VERSION of a workflow."""
    return Query("worker_match", {"queue": queue, "task": task}, _candidate)


def tasks(queue: str) -> Query[str]:
    """The tasks that live workers on a queue know."""
    return Query("task_gather", {"queue": queue, "most": str(_MOST_TASKS)}, first)


def ahead(record: JobRecord) -> Query[Count]:
    """How many due jobs of its queue come before a job."""
    return Query(
        "lane_ahead",
        {
            "queue": record.queue,
            "priority": str(record.priority),
            "run_at": instant(record.run_at),
            "id": str(record.id),
            "most": str(MOST_AHEAD + 1),
        },
        lambda row: Count(min(row[0], MOST_AHEAD), more=row[0] > MOST_AHEAD),
    )


def suspects_ahead(record: JobRecord, workers: Iterable[UUID]) -> Query[Queueing]:
    """How many suspects of its queue come before one, and which of these workers are at a suspect now."""
    return Query(
        "suspect_ahead",
        {
            "queue": record.queue,
            "run_at": instant(record.run_at),
            "id": str(record.id),
            "most": str(MOST_AHEAD + 1),
            "workers": plain_array(map(str, workers)),
            "suspect": str(SUSPECT_FROM),
        },
        _queueing,
    )


def holder(key: str) -> Query[KeyHolder]:
    """The job that holds a key."""
    return Query("key_look", {"key": key}, _holder)


def open_steps(job_id: UUID) -> Query[OpenStep]:
    """The first steps that a workflow waits for."""
    return Query("step_open", {"id": str(job_id), "most": str(_MOST_STEPS)}, _open_step)


def hold(job_id: UUID) -> Query[JobLock]:
    """Whether a job has begun, and who has its row locked."""
    return Query("job_hold", {"id": str(job_id)}, JobLock._make)


def step_sum(job_id: UUID) -> Query[tuple[int, int, bool]]:
    """How many children a workflow has begun, how many of them have not ended, and whether it has failed."""
    return Query("step_sum", {"id": str(job_id)}, lambda row: (row[0], row[1], row[2]))


def step_error(job_id: UUID, key: str) -> Query[StepError]:
    """The last error of a step."""
    return Query("step_error", {"id": str(job_id), "key": key}, lambda row: StepError(row[0] or "", row[1] or ""))


def gather_facts(job_id: UUID) -> Conversation[Situation]:
    """Gather the facts about a job, in a transaction that writes nothing and waits for nothing for long."""
    yield counts.begin_reading(TIMEOUT)
    holders = (yield from try_query("locks", queries.lock_holders(_MOST_STEPS), {})) or ()
    unreadable = next((one for one in holders if one.stops_reads and one.whole in {"jobs", "history"}), None)
    if unreadable is not None:
        [at] = yield schema.now()
        unknown = {"the job": LOCKED}
        return Situation(at=at, job=job_id, record=None, locked=_table_lock(unreadable), unknown=unknown)
    unclaimable = next((_table_lock(one) for one in holders if one.stops_claims), None)
    looks = 0
    while True:
        looks += 1
        [at] = yield schema.now()
        found = yield from pages.show(job_id, inside=True)
        situation = yield from _around(at, job_id, found[0] if found else None, unclaimable)
        if not situation.is_odd or looks == _LOOKS or (yield from pages.show(job_id, inside=True)) == found:
            return situation


def _table_lock(holder: queries.LockHolder) -> TableLock:
    return TableLock(holder.pid, holder.name, holder.table, holder.mode, timedelta(seconds=holder.seconds or 0.0))


def _around(
    at: datetime, job_id: UUID, record: JobRecord | None, unclaimable: TableLock | None
) -> Conversation[Situation]:
    """The facts that bear on a job in this state."""
    unknown: dict[str, str] = {}
    known: dict[str, Any] = {}
    known["events"] = yield from try_query("events", events.latest(job=str(job_id), limit=_MOST_EVENTS), unknown)
    if record is None:
        settings = yield from try_query("retention", queues.settings(), unknown)
        known["keeps"] = settings and [keep for one in settings for keep in one[1:] if keep is not None]
    elif not record.ended:
        known |= yield from _before_its_end(at, record, unknown)
    if record is not None and record.key is not None:
        held = yield from try_query("key", holder(record.key), unknown)
        known["holder"] = held[0] if held else None
    if record is not None and record.args is None:
        unknown["arguments, errors"] = "not this role's to read"
    return Situation(at=at, job=job_id, record=record, unclaimable=unclaimable, unknown=unknown, **known)


def _before_its_end(at: datetime, record: JobRecord, unknown: dict[str, str]) -> Conversation[dict[str, Any]]:
    known: dict[str, Any] = {}
    known["pauses"] = yield from try_query("pauses", pauses.listed(), unknown)
    found = yield from try_query(
        "workers", candidates(queue=record.queue, task=versioned(record.task, record.version)), unknown
    )
    known["workers"] = found
    # A role that may not ask knows no more than that the job is due, or claimed.
    holds = yield from try_query("row", hold(record.id), {})
    known["hold"] = holds[0] if holds else None
    listeners = [one for one in found or () if one.is_alive and one.listens]
    if listeners and not any(one.knows for one in listeners):
        known["tasks"] = yield from try_query("tasks", tasks(record.queue), unknown)
    if record.waits_for == "suspect":
        queueing = yield from try_query("suspects", suspects_ahead(record, (one.id for one in listeners)), unknown)
        known["queueing"] = queueing[0] if queueing else None
    if record.version is not None and record.claims > 0:
        known |= yield from _remembered(record, unknown)
    if record.state == "ready" and record.run_at <= at:
        counted = yield from try_query("ahead", ahead(record), unknown)
        known["ahead"] = counted[0] if counted else None
    return known


def _remembered(record: JobRecord, unknown: dict[str, str]) -> Conversation[dict[str, Any]]:
    """The waits of a workflow that has begun."""
    known: dict[str, Any] = {}
    found = yield from try_query("steps", open_steps(record.id), unknown)
    known["open_steps"] = found and (yield from _with_errors(record.id, found, unknown))
    for children, open_children, has_failed in (yield from try_query("steps", step_sum(record.id), unknown)) or ():
        known |= {"children": (children, open_children), "has_failed": has_failed}
    sent = yield from try_query("signals", records.signals_outline(record.id), unknown)
    known["signals"] = sent and [signal.name for signal in sent]
    return known


def _with_errors(job_id: UUID, steps: Sequence[OpenStep], unknown: dict[str, str]) -> Conversation[list[OpenStep]]:
    """The same steps; those that are to be tried again with their last errors."""
    told = list(steps)
    for number, step in enumerate(told):
        if step.state == "retrying":
            errors = yield from try_query("errors of steps", step_error(job_id, step.key), unknown)
            told[number] = replace(step, error=errors[0] if errors and errors[0].type else None)
    return told


def _open_step(row: Row) -> OpenStep:
    name, key, kind, state, attempts, until, child, started_at = row
    return OpenStep(name, key, kind, state, attempts, read_moment(until), read_uuid(child), known_moment(started_at))


def _candidate(row: Row) -> Candidate:
    worker_id, host, pid, slots, held, lease, lasts, blocked, by, listens, knows, listened, version, stopping, stuck = (
        row
    )
    return Candidate(
        id=UUID(worker_id),
        host=host,
        pid=pid,
        slots=slots,
        held=held,
        lease_left=timedelta(seconds=lease),
        lasts=timedelta(seconds=lasts),
        blocked=None if blocked is None else timedelta(seconds=blocked),
        blocked_by=by,
        listens=listens,
        knows=knows,
        queues=tuple(listened),
        version=version,
        stopping=stopping,
        stuck=stuck,
    )


def _queueing(row: Row) -> Queueing:
    before, busy = row
    return Queueing(Count(min(before, MOST_AHEAD), more=before > MOST_AHEAD), frozenset(map(UUID, busy)))


def _holder(row: Row) -> KeyHolder:
    job, until = row
    return KeyHolder(UUID(job), None if until is None else datetime.fromisoformat(until))
