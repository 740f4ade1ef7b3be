"""Timelines: those of workflows for the dashboard, in a bounded number of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from rowlock.model.record import JobRecord, read_json, read_moment
from rowlock.model.workflow.step import StepKind, StepState
from rowlock.model.workflow.timeline import TimelineSignal, TimelineStep
from rowlock.store.find import pages
from rowlock.store.query import Conversation, Query, Row, array, plain_array
from rowlock.store.workflows import records

MOST_STEPS_COUNTED: Final = 1_000
MOST_BYTES: Final = 16_384
MOST_ASKED: Final = 50
MOST_SIGNALS: Final = 200


@dataclass(frozen=True, slots=True)
class Advance:
    """How far a live workflow has come, and what it waits for; it is not `counted` if it has more steps than we count.

    `wait` names the open step that somebody would name first: a signal, then children, then what comes soonest.
    """

    ended: int
    children: int
    counted: bool
    wait: str | None
    kind: StepKind | None
    state: StepState | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Received:
    """A signal that was sent to a workflow; `taken_at` is when a wait has taken it, if one has."""

    signal: TimelineSignal
    taken_at: datetime | None


class Values(NamedTuple):
    """What a step was given, and what it made of it; of what is too large, only the names."""

    key: str
    input: Any
    result: Any
    error: Any
    left_out: tuple[str, ...]


class Reading(NamedTuple):
    """A workflow as it was read: its steps without their values, and the signals that it waits for with their forms."""

    job: JobRecord
    steps: list[TimelineStep]
    asks: list[TimelineStep]
    received: list[Received]


def advances(ids: Iterable[UUID]) -> Query[tuple[UUID, Advance]]:
    """How far these workflows have come."""
    return Query(
        "workflow_progress", {"ids": plain_array(map(str, ids)), "most": str(MOST_STEPS_COUNTED + 1)}, _advance
    )


def _advance(row: Row) -> tuple[UUID, Advance]:
    job_id, ended, children, looked, wait, kind, state, until = row
    counted = looked <= MOST_STEPS_COUNTED
    return UUID(job_id), Advance(ended, children, counted, wait, kind, state, read_moment(until))


def read(job_id: UUID, verb: str) -> Conversation[Reading | None]:
    """A workflow, as far as this role may read it, for `verb`; None if there is no such job."""
    jobs = yield from pages.show(job_id)
    if not jobs:
        return None
    [job] = jobs
    records.check_workflow(job, verb)
    steps = yield records.steps_outline(job_id)
    waits = [step for step in steps if step.is_open and step.kind == "signal"]
    asks = waits and not job.ended and (yield from _unless_refused(signal_waits(job_id), waits))
    received = yield from _unless_refused(trace(job_id), None)
    if received is None:
        received = [Received(signal, None) for signal in (yield records.signals_outline(job_id))]
    return Reading(job, steps, asks or [], received)


def _unless_refused(query: Query[Any], instead: Any) -> Conversation[Any]:  # noqa: ANN401  whatever it reads
    """The rows; something else where this role has not the right to them."""
    try:
        return (yield query)
    except Exception as error:
        if not pages.is_refusal(error):
            raise
    return instead


def signal_waits(job_id: UUID) -> Query[TimelineStep]:
    """The signals that a workflow waits for, with their forms."""
    return Query("step_ask", {"id": str(job_id), "most": str(MOST_ASKED)}, TimelineStep.read)


def trace(job_id: UUID) -> Query[Received]:
    """The signals to a workflow, taken or not: the latest."""
    return Query("signal_trace", {"id": str(job_id), "most": str(MOST_SIGNALS)}, _received)


def _received(row: Row) -> Received:
    return Received(TimelineSignal.read(row[:4]), read_moment(row[4]))


def values(job_id: UUID, keys: Iterable[str]) -> Query[Values]:
    """What these steps were given, and what they made of it."""
    return Query("step_peek", {"id": str(job_id), "keys": array(keys), "most": str(MOST_BYTES)}, _values)


def _values(row: Row) -> Values:
    key, given, result, error, left_out = row
    return Values(key, read_json(given), read_json(result), read_json(error), tuple(left_out))


def filled(job_id: UUID, steps: Iterable[TimelineStep]) -> Conversation[Mapping[str, Values]]:
    """The values of these steps by their keys; none where this role may not read them."""
    keys = [step.key for step in steps]
    rows: list[Values] = (yield from _unless_refused(values(job_id, keys), [])) if keys else []
    return {row.key: row for row in rows}


def with_values(step: TimelineStep, known: Values | None) -> TimelineStep:
    """A step with what was read of its values."""
    return step if known is None else replace(step, input=known.input, result=known.result, error=known.error)
