"""Ended jobs: in which state, when and why."""

from __future__ import annotations

from typing import Any, Final

from rowlock.explain.phrases import because, command, instant_of, last_error, who_died
from rowlock.model.explain_facts import Situation
from rowlock.model.explanation import Cause
from rowlock.model.formatting import span
from rowlock.model.record import JobRecord
from rowlock.model.redact import redact_text

_FAILED: Final = {
    "exhausted": "all its attempts are spent",
    "refused": "its retry policy does not want this error retried",
    "result": "what its handler returned cannot be stored",
}
# Between the reason of a workflow's end and the names of the steps that could not be undone.
_NOT_UNDONE: Final = "; could not be undone: "


def how_it_ended(situation: Situation, record: JobRecord) -> Cause:
    """One cause for each way to end."""
    match record.state:
        case "succeeded":
            return _succeeded(situation, record)
        case "failed":
            return _failed(situation, record)
        case _:
            return _cancelled(situation, record)


def _succeeded(situation: Situation, record: JobRecord) -> Cause:
    took = record.ended_at - record.started_at if record.ended_at and record.started_at else None
    lasted = "" if took is None else f", after it had run for {span(took)}"
    says = f"It succeeded at {_ended(situation, record)}{lasted}."
    return Cause("succeeded", says, facts=_facts(record) | {"took": took, "failures": record.failures})


def _failed(situation: Situation, record: JobRecord) -> Cause:
    facts = _facts(record) | {"reason": record.reason, "failures": record.failures, "attempts": record.attempts}
    if record.errors:
        facts |= {"error": record.errors[-1].type, "message": redact_text(record.errors[-1].message)}
    again = command("jobs", "retry", record.id)
    if record.reason == "poison":
        says = f"It failed as poison at {_ended(situation, record)}: {who_died(situation, record)}."
        do = f"find out what it does to its process (memory?), fix it, then {again}"
        return Cause("failed", says, do, facts | {"crashes": record.crashes, "died": situation.died or None})
    if record.version is not None:
        return _failed_workflow(situation, record, facts)
    why = _FAILED.get(record.reason or "", record.reason or "no reason given")
    says = (
        f"It failed for good at {_ended(situation, record)}, in attempt {record.failures} of {record.attempts}, "
        f"because {why}{last_error(record)}."
    )
    return Cause("failed", says, f"fix what raised it, then {again}", facts)


def _failed_workflow(situation: Situation, record: JobRecord, facts: dict[str, Any]) -> Cause:
    reason, left = _undone(record)
    why = _FAILED.get(reason, "its code raised an error that it did not catch" if reason == "raised" else reason)
    says = f"It failed for good at {_ended(situation, record)}, because {why}{last_error(record)}{left}."
    do = f"fix what raised it, then {command('workflows', 'retry', record.id)}; it goes on where it can"
    return Cause("failed", says, do, facts)


def _undone(record: JobRecord) -> tuple[str, str]:
    """The reason of a workflow's end, and, as the end of a sentence, what could not be undone."""
    reason, _, left = (record.reason or "").partition(_NOT_UNDONE)
    return reason, f"; it could not be undone: {left}" if left else ""


def _cancelled(situation: Situation, record: JobRecord) -> Cause:
    facts = _facts(record) | {"reason": record.reason}
    ended = _ended(situation, record)
    if record.version is not None and _NOT_UNDONE in (record.reason or ""):
        return _left_behind(record, ended, facts)
    if record.reason == "expired":
        says = f"It was cancelled at {ended}: it expired before a worker had started it."
        return Cause("cancelled", says, "if it was worth running, enqueue it again with a longer expires=", facts)
    if record.reason == "terminated":
        return _terminated(situation, record, ended, facts)
    if record.reason != "asked":
        return Cause("cancelled", f"Its handler cancelled it at {ended}{because(record.reason)}.", facts=facts)
    again = f"{command('jobs', 'retry', record.id, '--state', 'cancelled')}, if that was a mistake"
    asked = situation.event("cancelled") or situation.event("replaced")
    if asked is None:
        return Cause("cancelled", f"It was cancelled at {ended}, because somebody asked for it.", again, facts)
    why = asked.details.get("why")
    says = f"It was cancelled at {ended} by {asked.actor}{because(why)}."
    return Cause("cancelled", says, again, facts | {"by": asked.actor, "why": why})


def _terminated(situation: Situation, record: JobRecord, ended: str, facts: dict[str, Any]) -> Cause:
    event = situation.event("terminated")
    who, why = ("somebody", None) if event is None else (event.actor, event.details.get("why"))
    says = f"It was terminated at {ended} by {who}{because(why)}; nothing that it has done was undone."
    do = f"put right by hand what must not stay: {command('workflows', 'show', record.id)}"
    return Cause("cancelled", says, do, facts | {"by": who, "why": why})


def _left_behind(record: JobRecord, ended: str, facts: dict[str, Any]) -> Cause:
    _, left = _undone(record)
    do = f"fix by hand what is left of it: {command('workflows', 'show', record.id)}"
    return Cause("cancelled", f"It was cancelled at {ended}{left}.", do, facts)


def _ended(situation: Situation, record: JobRecord) -> str:
    return "" if record.ended_at is None else instant_of(record.ended_at, situation.at)


def _facts(record: JobRecord) -> dict[str, Any]:
    return {"ended_at": record.ended_at}
