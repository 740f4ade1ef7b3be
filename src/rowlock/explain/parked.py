"""Parked workflows: what a workflow waits for, and what it does next."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from rowlock.explain.phrases import because, command, error_of, instant_of, listed
from rowlock.model.explain_facts import OpenStep, Situation
from rowlock.model.explanation import Cause
from rowlock.model.formatting import count
from rowlock.model.record import JobRecord
from rowlock.model.redact import redact_text

# What a blocked workflow's reason begins with, and where in it what to do begins.
_CHANGED = "changed code: "
_REMEDY = ". Deploy "


def is_parked(situation: Situation, record: JobRecord) -> bool:
    """Whether it waits at a wait in its code."""
    if record.version is None or record.claims == 0:
        return False
    return record.state == "parked" or (
        record.state == "ready" and record.run_at > situation.at and bool(situation.open_steps)
    )


def what_it_waits_for(situation: Situation, record: JobRecord) -> Iterator[Cause]:
    """A cause for each wait; those that a person can end come first."""
    steps = situation.open_steps or ()
    yield from (_signal(situation, record, step) for step in steps if step.kind == "signal")
    yield from (_next_try(situation, record, step) for step in steps if step.state == "retrying")
    children = [step for step in steps if step.kind == "child"]
    if children:
        yield _children(situation, children)
    yield from (_sleep(situation, step) for step in steps if step.kind == "sleep")
    if not steps and record.waits_for is None:
        yield Cause("sleeping", f"It waits until {instant_of(record.run_at, situation.at)}.")
    elif not steps:  # a role that may not read them sees what stands on the job
        what = "its children" if record.waits_for == "children" else "a signal"
        yield Cause("children" if record.waits_for == "children" else "signal", f"It waits for {what}.")


def _signal(situation: Situation, record: JobRecord, step: OpenStep) -> Cause:
    until = "" if step.until is None else f", until {instant_of(step.until, situation.at)}"
    says = f"It waits for signal {step.name!r} since {instant_of(step.started_at, situation.at)}{until}."
    facts = {"signal": step.name, "step": step.key, "since": step.started_at, "until": step.until}
    return Cause("signal", says, f"send it: {command('workflows', 'signal', record.id, step.name)}", facts)


def _next_try(situation: Situation, record: JobRecord, step: OpenStep) -> Cause:
    what = f"{'Its undo' if step.kind == 'undo' else 'Its step'} {step.key!r}"
    when = "" if step.until is None else f" at {instant_of(step.until, situation.at)}"
    failed = "" if step.attempts == 0 else f", after {count(step.attempts, 'failed try', 'failed tries')}"
    told = because(None if step.error is None else error_of(step.error))
    facts: dict[str, Any] = {"step": step.key, "failures": step.attempts, "next_try": step.until}
    if step.error is not None:
        facts |= {"error": step.error.type, "message": redact_text(step.error.message)}
    do = f"wait, or fix what it fails of; {command('workflows', 'show', record.id)}"
    return Cause("retrying", f"{what} is tried again{when}{failed}{told}.", do, facts)


def _children(situation: Situation, steps: list[OpenStep]) -> Cause:
    ids = [str(step.child) for step in steps if step.child is not None]
    begun, left = (len(steps), len(steps)) if situation.children is None else situation.children
    which = f"child {ids[0]}" if begun == left == 1 and ids else f"{left:,} of {count(begun, 'child', 'children')}"
    named = "" if begun == left == 1 else f": {listed(ids)}"
    do = f"look at the child: {command('explain', ids[0])}" if ids else None
    return Cause("children", f"It waits for {which}{named}.", do, {"children": begun, "open": left, "first": ids})


def _sleep(situation: Situation, step: OpenStep) -> Cause:
    when = "some time" if step.until is None else instant_of(step.until, situation.at)
    return Cause("sleeping", f"It sleeps until {when}.", facts={"step": step.key, "until": step.until})


# On its way out


def how_it_is_ended(situation: Situation, record: JobRecord) -> Iterator[Cause]:
    """The cause of a workflow that is being undone, cancelled or failed."""
    if record.version is None or record.claims == 0:
        return
    if record.cancel_at is not None:
        asked = situation.event("cancelled") or situation.event("replaced")
        who, why = ("somebody", None) if asked is None else (asked.actor, asked.details.get("why"))
        says = (
            f"It will end as cancelled, as {who} asked at {instant_of(record.cancel_at, situation.at)}{because(why)}; "
            "what it has done is undone first."
        )
        do = None
        if record.waits_for == "code":
            do = f"if its code does not come back: {command('workflows', 'terminate', record.id)}, which undoes nothing"
        yield Cause("cancelling", says, do, {"by": who, "why": why, "asked_at": record.cancel_at})
    elif situation.has_failed:
        yield Cause("undoing", "It has failed, and what it has done is being undone before it ends.")


# Code


def what_blocks_it(record: JobRecord, at: datetime) -> Cause | None:
    """The cause of a workflow that waits for code which fits its record, or has no fault; None for any other."""
    reason = record.reason or ""
    if record.version is None:
        return None
    facts = {"reason": reason}
    if reason.startswith(_CHANGED):
        difference, _, remedy = reason.removeprefix(_CHANGED).partition(_REMEDY)
        do = f"deploy {remedy.rstrip('.')}; {command('workflows', 'check', '--app', 'MODULE')} finds all of them"
        return Cause("changed", f"Its code has changed since it began: {difference}.", do, facts)
    if record.state == "waiting" and record.started_at is not None and record.run_at > record.started_at:
        said, _, remedy = reason.rpartition("; ")
        said = said or remedy
        says = (
            f"{said[:1].upper()}{said[1:]}. Nothing has failed or is undone because of that; it is tried again at "
            f"{instant_of(record.run_at, at)}, and by new code."
        )
        do = f"fix it, and deploy, or name the error in fails_on=; its traceback: {command('jobs', 'show', record.id)}"
        return Cause("fault", says, do, facts | {"next_try": record.run_at})
    return None


# Beside


def beside(situation: Situation, record: JobRecord) -> Iterator[str]:
    """Sentences on a workflow or a child that are no cause, but worth knowing."""
    if record.parent is not None:
        yield f"It is a child of workflow {record.parent}: {command('explain', record.parent)}."
    if record.version is None or record.ended:
        return
    wanted = {step.name for step in situation.open_steps or () if step.kind == "signal"}
    stored = list(dict.fromkeys(situation.signals or ()))
    if record.state == "ready" and record.run_at <= situation.at and situation.open_steps:
        come = [repr(name) for name in stored if name in wanted]
        what = f"signal {listed(come)} has come" if come else "what it waited for has come, or its time is over"
        yield f"It was parked, and is awake: {what}."
    if wanted and (others := [repr(name) for name in stored if name not in wanted]):
        yield f"It was also sent {listed(others)}, which it does not wait for now."
