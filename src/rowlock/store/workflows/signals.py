"""Signals: messages sent to a workflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NamedTuple
from uuid import UUID

from rowlock.errors import InvalidOption, JobNotFound, NotAWorkflow, RowlockError, SignalRefused
from rowlock.model.ids import new_id
from rowlock.model.names import check_key, check_signal, shown
from rowlock.model.payload.arguments import Result
from rowlock.store.query import Conversation, Query

Answer = Literal["sent", "duplicate", "ended", "unknown", "no workflow"]

_PAYLOAD: Final = Result.untyped("the payload of a signal")


class SignalSent(NamedTuple):
    """What became of a signal; the job that was meant, if there is one; and how that ended, or `cancelling`."""

    answer: Answer
    job: str | None
    state: str | None


def sending(
    target: UUID | str,
    name: str,
    payload: object,
    key: str | None,
    *,
    actor: str | None = None,
    why: str | None = None,
) -> Callable[[], Conversation[bool]]:
    """The conversation that sends a signal: True when it is stored, False when it is a duplicate by its key.

    With an `actor`, an event is written, too. Its id is made here and now: a conversation that is held again sends the
    same signal.
    """
    meant, told = _meant(target), check_signal(name)
    text, once = _PAYLOAD.encode(payload), None if key is None else check_key(key)
    if actor is None:
        query = send(new_id(), target=meant, name=told, payload=text, key=once)
    else:
        query = tell(new_id(), target=meant, name=told, payload=text, key=once, actor=actor, why=why)

    def converse() -> Conversation[bool]:
        sent: SignalSent
        [sent] = yield query
        if sent.answer not in {"sent", "duplicate"}:
            raise _refusal(sent, meant, name)
        return sent.answer == "sent"

    return converse


def send(signal_id: str, *, target: str, name: str, payload: str | None, key: str | None) -> Query[SignalSent]:
    """Store a signal for the workflow of that id, or else of that key, and wake it; one sent before is not another."""
    return Query(
        "signal_send",
        {"id": signal_id, "target": target, "name": name, "payload": payload, "key": key},
        SignalSent._make,
    )


def tell(
    signal_id: str,
    *,
    target: str,
    name: str,
    payload: str | None,
    key: str | None,
    actor: str,
    why: str | None,
) -> Query[SignalSent]:
    """The same for a signal that somebody sends by hand: with an event that says who it was, and why."""
    return Query(
        "signal_tell",
        {"id": signal_id, "target": target, "name": name, "payload": payload, "key": key, "actor": actor, "why": why},
        SignalSent._make,
    )


def _meant(target: UUID | str) -> str:
    if isinstance(target, UUID):
        return str(target)
    if not isinstance(target, str):
        raise InvalidOption(f"target {shown(target)} must be a workflow's Job, its id or its key")
    return check_key(target)


def _refusal(sent: SignalSent, target: str, name: str) -> RowlockError:
    if sent.job is None:
        return JobNotFound(
            None,
            f"no workflow has the key {shown(target)}: never started, not committed, or its time in history is over",
        )
    job = UUID(sent.job)
    match sent.answer:
        case "ended":
            return SignalRefused(job, sent.state or "ended", name)
        case "no workflow":
            return NotAWorkflow(job, f"job {job} is of a plain task and takes no signals; only workflows do")
        case _:
            return JobNotFound(
                job, f"no job {job}: not committed, rolled back, deleted, or its time in history is over"
            )
