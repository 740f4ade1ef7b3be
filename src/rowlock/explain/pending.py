"""Pending jobs: what keeps a job from running that is ready or waits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from difflib import get_close_matches
from typing import Any

from pydantic_core import to_json

from rowlock.errors import InvalidArguments, TaskError
from rowlock.explain.missing import why_nobody_can_claim
from rowlock.explain.parked import how_it_is_ended, is_parked, what_blocks_it, what_it_waits_for
from rowlock.explain.phrases import a_worker, because, command, instant_of, last_error, listed, who_died
from rowlock.model.explain_facts import Candidate, JobLock, Situation
from rowlock.model.explanation import Cause
from rowlock.model.formatting import count, span
from rowlock.model.names import unversioned
from rowlock.model.pause import Pause
from rowlock.model.record import JobRecord
from rowlock.model.redact import redact_text
from rowlock.model.spec import Handler
from rowlock.model.stats.stats import Count

# A claim, or an operator's verb, has a row for some milliseconds.
_LONG_HELD = 1.0
# The actor of a pause that a breaker made.
_BREAKER = "breaker"
# How much of a task's name another must share to be taken for it: `sned` and `send` do, `sned` and `snooze` do not.
_SIMILAR = 0.7


def why_it_is_not_running(situation: Situation, record: JobRecord, handler: Handler | None) -> Iterator[Cause]:
    """All causes that keep it from running, the weightiest first."""
    found = list(_obstacles(situation, record, handler))
    if found:
        yield from found
    elif situation.workers is not None:
        yield _turn(situation, record)
    else:
        yield Cause("turn", "It is due; who could run it is not known.")


def _obstacles(situation: Situation, record: JobRecord, handler: Handler | None) -> Iterator[Cause]:
    misfit = None if handler is None else _misfit(record, handler)
    if situation.unclaimable is not None and record.state == "ready" and record.run_at <= situation.at:
        yield why_nobody_can_claim(situation.unclaimable)
    if record.expires_at is not None and record.expires_at <= situation.at:
        yield _expired(situation, record)
    yield from how_it_is_ended(situation, record)
    if is_parked(situation, record):
        yield from what_it_waits_for(situation, record)
    elif record.state == "waiting":
        yield _waiting(situation, record, fits=handler is not None and misfit is None)
    elif record.run_at > situation.at:
        yield _not_due(situation, record)
    if situation.hold is not None and situation.hold.pid is not None and _is_held_long(situation.hold):
        yield _row_locked(situation.hold)
    yield from _pauses(situation, record)
    if situation.workers is not None:
        yield from _workers(situation, record)
    if misfit is not None and record.waits_for != "code":
        yield _no_longer_fits(record, f"the code of this process: {misfit}")


def _is_held_long(hold: JobLock) -> bool:
    """Whether the row has been locked for longer than a claim takes."""
    return hold.seconds is None or hold.seconds >= _LONG_HELD


def _row_locked(hold: JobLock) -> Cause:
    since = "" if hold.seconds is None else f", whose transaction began {span(timedelta(seconds=hold.seconds))} ago"
    do = f"commit or roll back there, or select pg_terminate_backend({hold.pid})"
    facts = {"pid": hold.pid, "application": hold.application, "user": hold.user, "others": hold.others}
    if hold.others:
        since += f", and by {count(hold.others, 'other session')}"
        until, do = "all these transactions end", f"{do}; then ask again for the others"
    else:
        until = "that transaction ends"
    says = f"Its row is locked by {hold.name}{since}: workers pass over it until {until}."
    return Cause("row_locked", says, do, facts)


# Its own times and tries


def _expired(situation: Situation, record: JobRecord) -> Cause:
    when = "" if record.expires_at is None else f" at {instant_of(record.expires_at, situation.at)}"
    return Cause(
        "expired",
        f"It expired{when}: it will not run, but end as cancelled as soon as a worker looks.",
        "if it is still wanted, enqueue it again with a longer expires=",
        {"expires_at": record.expires_at},
    )


def _not_due(situation: Situation, record: JobRecord) -> Cause:
    when = instant_of(record.run_at, situation.at)
    facts: dict[str, Any] = {"run_at": record.run_at}
    now = f"{command('jobs', 'run-next', record.id)} runs it now"
    if record.claims == 0:
        return Cause("delayed", f"It is not due until {when}.", now, facts)
    if _has_failed(record):
        spent = f"attempt {record.failures} of {record.attempts} failed"
        facts |= {"failures": record.failures, "attempts": record.attempts}
        if record.errors:
            facts |= {"error": record.errors[-1].type, "message": redact_text(record.errors[-1].message)}
        return Cause("retrying", f"It is retried at {when}, after {spent}{last_error(record)}.", now, facts)
    facts |= {"claims": record.claims, "crashes": record.crashes}
    return Cause("snoozed", f"Its handler snoozed it until {when}; no attempt is spent.", now, facts)


def _has_failed(record: JobRecord) -> bool:
    """Whether its last attempt has failed; who may not read the errors can only go by their number."""
    if record.args is None:
        return record.failures > 0
    return bool(record.errors) and record.errors[-1].attempt == record.claims


def _suspect(situation: Situation, record: JobRecord) -> Cause:
    says, died = who_died(situation, record), situation.died
    facts: dict[str, Any] = {"crashes": record.crashes, "died": died or None}
    do = f"find out what it does to its process: {command('jobs', 'show', record.id)}"
    queueing = situation.queueing
    if queueing is None or not situation.listeners:
        says += ": each worker runs one such job at a time, beside others, and it waits for its turn"
        return Cause("suspect", f"{says}.", do, facts)
    workers, busy = len(situation.listeners), len(queueing.busy)
    facts |= {"ahead": queueing.before.value, "workers": workers, "busy": busy}
    if busy < workers:
        turn = "it is next" if queueing.before == Count(0) else f"{_before(queueing.before)} before it"
        says += f": each worker runs one such job at a time, beside others, and {turn}"
        return Cause("suspect", f"{says}.", do, facts)
    at = (
        "its worker is"
        if workers == 1
        else f"{'both' if workers == 2 else f'all {workers:,}'} workers of its queue are"
    )
    says += f": each worker runs one such job at a time, and {at} at one; {_before(queueing.before)} before it"
    return Cause("suspect", f"{says}.", f"wait for one of them to end, or start another worker; {do}", facts)


# What it waits for


def _waiting(situation: Situation, record: JobRecord, *, fits: bool) -> Cause:
    match record.waits_for:
        case "pause":
            return _set_aside(situation, record)
        case "code":
            return _lacks_code(situation, record, fits=fits)
        case _:
            return _suspect(situation, record)


def _set_aside(situation: Situation, record: JobRecord) -> Cause:
    pause = situation.pause_of(task=record.task)
    if pause is not None:
        return _paused(situation, pause)
    says = f"It waits for the end of a pause of task {record.task!r}, which is over"
    if situation.alive:
        return Cause("pause_over", f"{says}: a live worker is about to release it.")
    do = f"start one: {a_worker(record.queue)}"
    return Cause("pause_over", f"{says}; but no worker lives that could release it.", do)


def _lacks_code(situation: Situation, record: JobRecord, *, fits: bool) -> Cause:
    able = [one.name for one in situation.listeners if one.knows]
    if (record.reason or "").startswith(("unknown task", "unknown version")):
        if able:
            says = f"It waited for the code of {_code(record)}, which {listed(able)} has now: it is about to start."
            return Cause("code_is_there", says, facts={"workers": able})
        return _unknown_code(situation, record, f"It waits for the code of {_code(record)}")
    if (record.reason or "").startswith("a workflow needs a version"):
        return _unversioned(record)
    if (differs := what_blocks_it(record, situation.at)) is not None:
        return differs
    # The reason names the task; the sentence does, too.
    said = (record.reason or "").partition(": ")[2] or record.reason or "no worker said why"
    cause = _no_longer_fits(record, f"task {record.task!r}: {said}")
    if fits:
        return Cause(cause.code, cause.says, "they fit the code of this process: deploy it to the workers", cause.facts)
    return cause


def _no_longer_fits(record: JobRecord, what: str) -> Cause:
    do = f"deploy code that takes them, say with a default for what is new, or {command('jobs', 'cancel', record.id)}"
    return Cause("misfit", f"Its arguments no longer fit {what.rstrip('.')}.", do, {"reason": record.reason})


def _misfit(record: JobRecord, handler: Handler) -> str | None:
    """Why the arguments do not fit the task as this process knows it; None if they do, or may not be read."""
    if record.args is None:
        return None
    try:
        handler.arguments.decode(to_json(record.args).decode())
    except InvalidArguments as error:
        return str(error)
    except TaskError:  # its annotations cannot be resolved: no worker could start with it either
        return None
    return None


# Pauses


def _pauses(situation: Situation, record: JobRecord) -> Iterator[Cause]:
    if (pause := situation.pause_of(queue=record.queue)) is not None:
        yield _paused(situation, pause)
    if record.waits_for != "pause" and (pause := situation.pause_of(task=record.task)) is not None:
        yield _paused(situation, pause)


def _paused(situation: Situation, pause: Pause) -> Cause:
    kind, name = ("queue", pause.queue) if pause.queue is not None else ("task", pause.task)
    until = "until somebody resumes it" if pause.until is None else f"until {instant_of(pause.until, situation.at)}"
    since = f"since {instant_of(pause.at, situation.at)}, {until}"
    do = command(f"{kind}s", "resume", name or "")
    facts = {"paused_by": pause.by, "since": pause.at, "until": pause.until, "why": pause.why}
    if pause.by == _BREAKER:
        why = (pause.why or "").removeprefix(f"{_BREAKER}: ")
        says = f"The breaker of task {name!r} has paused it {since}{because(why)}."
        return Cause("task_paused", says, f"fix what fails, then {do}, or wait", facts)
    says = f"{kind.capitalize()} {name!r} is paused by {pause.by} {since}{because(pause.why)}."
    return Cause("queue_paused" if kind == "queue" else "task_paused", says, do, facts)


# Workers that could run it


def _workers(situation: Situation, record: JobRecord) -> Iterator[Cause]:
    listeners = situation.listeners
    if not listeners:
        yield _nobody_listens(situation, record)
        return
    if record.waits_for != "code" and not any(one.knows for one in listeners):
        workers = f"{count(len(listeners), 'live worker listens', 'live workers listen')} on queue {record.queue!r}"
        yield _unknown_code(situation, record, f"{workers}, but none of them knows {_code(record)}")
    if all(one.stopping for one in listeners):
        says = f"Every worker that listens on queue {record.queue!r} is stopping: {_names(listeners)}."
        facts = {"workers": [one.name for one in listeners]}
        yield Cause("stopping", says, f"start another: {a_worker(record.queue)}", facts)
    able = [one for one in listeners if one.knows and not one.stopping]
    if able and all(one.vitals.says for one in able):
        yield _nobody_moves(record, able)


def _nobody_moves(record: JobRecord, able: list[Candidate]) -> Cause:
    """Each worker that could run it stands still."""
    first = max(able, key=lambda one: one.vitals.silent)
    what = "the worker" if len(able) == 1 else f"all {count(len(able), 'worker')}"
    does = "stands still" if len(able) == 1 else "stand still"
    says = f"On queue {record.queue!r} {what} that could run it {does}: {first.name} {first.vitals.says}."
    facts = {"workers": [one.name for one in able], "conditions": [one.vitals.health for one in able]}
    if first.vitals.health == "late":
        do = f"look at that process: continue it, or end it; meanwhile {a_worker(record.queue)}"
    else:
        do = f"start more workers: {a_worker(record.queue)}; and keep what blocks off the loop"
    return Cause("workers_stand_still", says, do, facts)


def _nobody_listens(situation: Situation, record: JobRecord) -> Cause:
    queues = sorted({queue for one in situation.alive for queue in one.queues})
    others = f"; those that live listen on {listed(queues)}" if queues else ", nor does any worker live at all"
    says = f"No live worker listens on queue {record.queue!r}{others}."
    do = f"start one: {a_worker(record.queue)}"
    return Cause("no_worker", says, do, {"listened_to": queues, "live_workers": len(situation.alive)})


def _code(record: JobRecord) -> str:
    """The code that a worker needs to run it."""
    return (
        f"task {record.task!r}" if record.version is None else f"version {record.version} of workflow {record.task!r}"
    )


def _unversioned(record: JobRecord) -> Cause:
    do = f"{command('jobs', 'cancel', record.id)}, and enqueue it with one: rowlock.enqueue(…, version => N)"
    return Cause("unversioned", f"It has no version, and {record.task!r} is a workflow.", do, {"reason": record.reason})


def _unknown_code(situation: Situation, record: JobRecord, says: str) -> Cause:
    known = situation.tasks or ()
    versions = [name for name in known if record.version is not None and unversioned(name)[0] == record.task]
    similar = [] if versions else get_close_matches(record.task, known, n=3, cutoff=_SIMILAR)
    elsewhere = [one for one in situation.alive if one.knows and not one.listens]
    facts: dict[str, Any] = {
        "workers": [one.name for one in situation.listeners],
        "versions": sorted({one.version for one in situation.listeners}),
        "similar_tasks": similar,
        "known_on": sorted({queue for one in elsewhere for queue in one.queues}),
    }
    do = "deploy the code that has it"
    if versions:
        says += f"; what is known there is {listed(versions)}"
        do += ", beside the other versions, or a migration from it to one of those"
        facts["known_versions"] = [unversioned(name)[1] for name in versions]
    if similar:
        says += f"; what is known there and reads like it is {listed(similar)}"
        do += ", with the old name in aliases= if it was renamed"
    if elsewhere:
        says += f"; {_names(elsewhere)} knows it, on queue {listed(facts['known_on'])}"
        do = f"{command('jobs', 'move', record.id, '--to', facts['known_on'][0])}, or {do}"
    return Cause("unknown_task" if record.version is None else "unknown_version", f"{says}.", do, facts)


def _turn(situation: Situation, record: JobRecord) -> Cause:
    """Only other jobs come before it."""
    able = [one for one in situation.listeners if one.knows and not one.stopping]
    slots, free = sum(one.slots for one in able), sum(one.free for one in able)
    before = situation.ahead
    there = f"there {_are(len(able))} {count(len(able), 'worker')} with {count(slots, 'slot')}"
    facts = {"ahead": None if before is None else before.value, "workers": len(able), "slots": slots, "free": free}
    if before is not None and before.more:
        facts["and_more"] = True
    if before == Count(0) and free:
        says = f"It is due and next on queue {record.queue!r}, for which {there}, {free:,} free."
        do = f"nothing: it should start within a second; if it does not, run {command('doctor')}"
        return Cause("next", says, do, facts)
    says = (
        f"It waits its turn: {_before(before)} before it on queue {record.queue!r}, "
        f"for which {there}, {f'{free:,}' if free else 'none'} free."
    )
    return Cause("turn", says, f"start more workers, or {command('jobs', 'run-next', record.id)}", facts)


def _before(jobs: Count | None) -> str:
    if jobs is None:
        return "nobody knows how many jobs are"
    return f"over {jobs.value:,} jobs are" if jobs.more else f"{count(jobs.value, 'job')} {_are(jobs.value)}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _names(workers: list[Candidate]) -> str:
    return listed(one.name for one in workers)
