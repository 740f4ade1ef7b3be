"""Running jobs: where, since when, and whether the worker is still alive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rowlock.explain.phrases import a_worker, because, instant_of
from rowlock.model.explain_facts import Candidate, Situation
from rowlock.model.explanation import Cause
from rowlock.model.formatting import count, span
from rowlock.model.record import JobRecord
from rowlock.store.claim import SUSPECT_FROM


def how_it_runs(situation: Situation, record: JobRecord) -> Iterator[Cause]:
    """The causes of a running job: lost with its worker, about to be cancelled, or running well."""
    holder = next((one for one in situation.workers or () if one.id == record.worker), None)
    lost = situation.workers is not None and (holder is None or not holder.is_alive)
    if lost:
        yield _lost(situation, record, holder)
    if record.cancel_at is not None:
        yield _cancelling(situation, record, holder)
    if not lost and situation.hold is not None and situation.hold.begun is not True and _is_full(holder):
        yield _claimed(situation, record, holder)
    elif not lost:
        yield _running(situation, record, holder)
    if record.crashes >= SUSPECT_FROM:
        says = f"{count(record.crashes, 'worker')} died while they ran it: its worker runs no other such job beside it."
        yield Cause("suspect", says)


def _lost(situation: Situation, record: JobRecord, holder: Candidate | None) -> Cause:
    facts = _facts(record, holder)
    if holder is None:
        held = f"It is held by worker {record.worker}, which is not on the books any more"
    else:
        held = f"Worker {holder.name} had it, but its lease ran out {span(holder.lease_left)} ago"
    if situation.alive:
        return Cause("lease_lost", f"{held}: a live worker is about to rescue it.", facts=facts)
    do = f"start one: {a_worker(record.queue)}"
    return Cause("lease_lost", f"{held}, and no worker lives that could rescue it.", do, facts)


def _cancelling(situation: Situation, record: JobRecord, holder: Candidate | None) -> Cause:
    asked = situation.event("cancelled") or situation.event("replaced")
    who, why = (asked.actor, asked.details.get("why")) if asked is not None else ("somebody", None)
    when = "" if record.cancel_at is None else f" at {instant_of(record.cancel_at, situation.at)}"
    still = "but its handler has not ended yet" if record.version is None else "what it has done is undone first"
    says = f"It will end as cancelled, as {who} asked{when}{because(why)}; {still}."
    do = "wait, or end that worker; a sync handler must look for itself: current_job().check()"
    return Cause("cancelling", says, do, _facts(record, holder) | {"by": who, "why": why, "asked_at": record.cancel_at})


def _running(situation: Situation, record: JobRecord, holder: Candidate | None) -> Cause:
    where = f"worker {record.worker}" if holder is None else holder.name
    since = "" if record.started_at is None else f" since {instant_of(record.started_at, situation.at)}"
    says = f"It is running: {where} has had it{since}"
    if record.version is None:  # a workflow's tries are those of its steps
        says += f", attempt {record.failures + 1} of {record.attempts}"
    facts = _facts(record, holder)
    if (progress := record.progress) is not None:
        note = "" if progress.note is None else f" ({progress.note})"
        says += f", {progress.share:.0%} done{note}"
        facts |= {"share": progress.share, "note": progress.note}
    return _at(holder, Cause("running", f"{says}.", facts=facts))


def _is_full(holder: Candidate | None) -> bool:
    return holder is not None and holder.held > holder.slots


def _claimed(situation: Situation, record: JobRecord, holder: Candidate | None) -> Cause:
    where = f"worker {record.worker}" if holder is None else holder.name
    since = "" if record.started_at is None else f" {span(situation.at - record.started_at)} ago"
    slots = "" if holder is None else f", of which it has {holder.slots:,}"
    says = f"Claimed ahead by {where}{since}, and waits for a slot there{slots}: it has not begun yet."
    return _at(holder, Cause("claimed", says, facts=_facts(record, holder)))


def _at(holder: Candidate | None, cause: Cause) -> Cause:
    """The same, and what is wrong with its worker: a blocked loop does not even give back what waits there."""
    if holder is None or not holder.vitals.says:
        return cause
    facts = {**cause.facts, "condition": holder.vitals.health}
    return replace(cause, says=f"{cause.says} But {holder.name} {holder.vitals.says}.", facts=facts)


def _facts(record: JobRecord, holder: Candidate | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"worker": record.worker, "started_at": record.started_at, "crashes": record.crashes}
    if holder is not None:
        facts |= {
            "host": holder.host,
            "pid": holder.pid,
            "version": holder.version,
            "lease_left": holder.lease_left,
            "stuck": holder.stuck,
        }
    return facts
