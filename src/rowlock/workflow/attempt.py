"""One attempt of a workflow, from what it remembers to its outcome.

Its code runs from the top; what it did before is answered from the record. It ends by parking, or for good; and if it
fails or is cancelled, by undoing first what it has registered.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from rowlock.errors import (
    Cancel,
    ChildCancelled,
    ChildFailed,
    LeaseLost,
    SignalTimeout,
    Snooze,
    StepFailed,
    WorkflowChanged,
    WorkflowError,
)
from rowlock.model.failure import describe, reason_of
from rowlock.model.handler import Handler
from rowlock.model.outcome import (
    Blocked,
    Cancelled,
    Failed,
    HandedBack,
    Restarted,
    Snoozed,
    Succeeded,
    Unsettled,
)
from rowlock.model.row import Claimed
from rowlock.model.step import Record
from rowlock.workflow import step_run
from rowlock.workflow.context import Context, Restart
from rowlock.workflow.execution import Execution
from rowlock.workflow.history import History
from rowlock.workflow.worker_interface import AttemptHandle, Environment

# A workflow that so many workers died of has failed, and is undone; if as many more die of that, it is left as it is.
MOST_CRASHES = 3

# Calls a workflow's function, which has its context, with the arguments, inside of whatever is around it.
Calls = Callable[[Callable[..., Any]], Awaitable[object]]


class Ended(NamedTuple):
    """An attempt's outcome, and what the workflow says of itself at last, if that has not been written yet."""

    outcome: Unsettled
    told: str | None = None


class _Failure(NamedTuple):
    """Why a workflow ends unsuccessfully: an error and the step that it came from, or a reason to be cancelled for."""

    error: str | None
    reason: str
    step: str | None = None

    def outcome(self, unmade: list[str]) -> Failed | Cancelled:
        """How it ends, when these could not be undone."""
        reason = f"{self.reason}; could not be undone: {', '.join(unmade)}" if unmade else self.reason
        return Cancelled(reason) if self.error is None else Failed(self.error, reason)


# How the code has come to its end: with an outcome, or unsuccessfully.
_Verdict = Unsettled | _Failure


async def attempt(
    held: AttemptHandle,
    handler: Handler,
    stage: Environment,
    call: Calls,
    *,
    seen: Callable[[BaseException], object] | None = None,
) -> Ended:
    """Run one attempt. CancelledError if it was stopped, and not because somebody asked to cancel the workflow."""
    row = held.row
    if row.crashes >= 2 * MOST_CRASHES:
        return Ended(_Failure(poison(), "poison").outcome(["its workers died of that, too"]))
    loaded = await stage.ledger.load(row)
    if row.version != handler.version:
        return Ended(await _carried_over(row, handler, stage, History(loaded.steps)))
    ends = row.cancelling or row.expired or row.crashes >= MOST_CRASHES
    play = Execution(held, handler, loaded, stage, replays=bool(ends))
    play.replays |= play.past.failure is not None
    verdict = await _brought_to_end(play, call, seen)
    if isinstance(verdict, _Failure):
        verdict = await _undone(play, verdict)
    if isinstance(verdict, Succeeded | Failed | Cancelled):
        await play.remember_sleeps()
    if isinstance(verdict, Succeeded | Failed | Cancelled | Restarted) and (left := play.children_left()):
        await stage.ledger.abandon(left)
    return Ended(verdict, None if isinstance(verdict, Blocked) else play.told())


async def _carried_over(row: Claimed, handler: Handler, stage: Environment, past: History) -> Unsettled:
    """A workflow of an earlier version goes on as this one, with its state carried over and a fresh history."""
    said = await stage.ledger.state(row)
    try:
        state = json.loads(said or "{}")
        for carry in handler.carries:
            state = carry(state)
        carried = json.dumps(state, allow_nan=False)
    except BaseException as error:  # the functions are the user's: Cancel and SystemExit are no state either
        fault = describe(error)
        return Blocked(
            "code",
            f"the state of version {row.version} could not be carried over to version {handler.version}: {fault.type}: "
            f"{fault.message}; fix the migration",
        )
    if left := past.open_children():
        await stage.ledger.abandon(left)
    return Restarted(row.args, handler.version or 1, carried)


# The code


async def _brought_to_end(play: Execution, call: Calls, seen: Callable[[BaseException], object] | None) -> _Verdict:
    """Run the code until it returns, raises, or is ended; `seen` is shown an error as it was raised."""
    play.begin()
    verdict: _Verdict | None = None
    try:
        verdict = _succeeded(play, await call(partial(_code, play)))
    except asyncio.CancelledError as error:
        if play.ending is not None or play.held.asked:
            play.forget_cancellation()
        elif play.was_stopped:
            raise
        else:
            verdict = _raised(play, error)
    except LeaseLost:
        verdict = HandedBack()
    except BaseException as error:
        if seen is not None:
            seen(error)
        verdict = _raised(play, error)
    finally:
        await play.close()
    if play.is_stopping and play.ending is None:
        # The worker cancelled the attempt, and the code made something else of that. Its verdict counts for nothing:
        # the next attempt comes to one that was not disturbed.
        return HandedBack()
    return _by_decision(play, verdict if play.fault is None else _raised(play, play.fault))


def _code(play: Execution, *args: object, **kwargs: object) -> Awaitable[object]:
    play.enter()
    called: Awaitable[object] = play.handler.function(Context(play), *args, **kwargs)
    return called


def _succeeded(play: Execution, result: object) -> _Verdict:
    if not play.replays:
        play.check_end()
    try:
        play.said()
        return Succeeded(play.handler.result.encode(result), undoable=bool(play.undos))
    except Exception as error:  # of a result that cannot be stored, or of its own serializer
        return _Failure(describe(error).to_json(), "result")


def _raised(play: Execution, error: BaseException) -> _Verdict:
    match error:
        case WorkflowChanged():
            return Blocked("code", reason_of(str(error)))
        case Restart() if not play.replays:
            return _restarted(play, error.arguments)
        case Snooze():
            return Snoozed(error.delay)
        case Cancel():
            return _Failure(None, reason_of(error.reason))
        case _:
            return _Failure(describe(error).to_json(), "raised", _step_behind(error))


def _restarted(play: Execution, arguments: str) -> _Verdict:
    try:
        return Restarted(arguments, play.handler.version or 1, play.said())
    except WorkflowError as error:
        return _Failure(describe(error).to_json(), "raised")


def _step_behind(error: BaseException) -> str | None:
    """The step whose failure an error is, or comes from; of a group, that of the first of its errors that has one."""
    seen: set[int] = set()
    ahead: list[BaseException | None] = [error]
    while ahead:
        behind = ahead.pop()
        if behind is None or id(behind) in seen:
            continue
        if isinstance(behind, StepFailed | ChildFailed | ChildCancelled | SignalTimeout):
            return behind.step
        seen.add(id(behind))
        ahead.append(behind.__cause__ or behind.__context__)
        if isinstance(behind, BaseExceptionGroup):
            ahead += reversed(behind.exceptions)
    return None


def _by_decision(play: Execution, verdict: _Verdict | None) -> _Verdict:
    """What counts: that the code does not match, that it was ended, what was decided earlier; then how it ended."""
    row = play.held.row
    if (stopped := _stopped(play)) is not None:
        return stopped
    # A cancel interrupts the code wherever it is, perhaps before it came to all of its undos. A replay comes to them.
    if isinstance(verdict, HandedBack) or (play.held.asked and not row.cancelling):
        return HandedBack()
    if row.cancelling or row.expired:
        return _Failure(None, "expired" if row.expired else "asked")
    if (decided := play.past.failure) is not None:
        told = json.loads(decided.value or "{}")
        return _Failure(decided.error, told["reason"], told["step"])
    if row.crashes >= MOST_CRASHES:
        return _Failure(poison(), "poison")
    if verdict is None:
        raise AssertionError("the code has ended, and nobody knows how")
    return verdict


def _stopped(play: Execution) -> Unsettled | None:
    """What became of an attempt that was ended before its code was."""
    if play.changed is not None:
        return Blocked("code", reason_of(str(play.changed)))
    if play.ending == "park":
        return play.parked()
    return HandedBack() if play.ending in ("hand back", "lost") else None


def poison() -> str:
    """What is stored of a job that workers died of."""
    return json.dumps(
        {"type": "WorkerLost", "message": f"{MOST_CRASHES} workers died while they ran it", "traceback": ""}
    )


# Undoing


async def _undone(play: Execution, failure: _Failure) -> Unsettled:
    """Undo what the code has registered, the latest first; each is remembered, and tried again by its own policy.

    The workflow ends only when the last of them has ended; however else this is left, another attempt goes on with it.
    """
    play.begin_undo()
    try:
        if play.past.failure is None and not play.held.row.cancelling:
            told = json.dumps({"reason": failure.reason, "step": failure.step})
            with play.busy():
                await play.write([Record("failure", 0, "failure", "done", value=told, error=failure.error)])
        unmade: list[str] = []
        registered = len(play.undos)
        # What was cut short may be recorded all the same, and what follows it in the code, an undo perhaps, was not
        # registered, or only now, by a task that would not end. A replay comes to all of it.
        for work in () if play.was_cut else reversed(play.undos[:registered]):
            try:
                await step_run.run(play, work, play.find(work.place, "undo", work.given))
            except StepFailed:
                unmade.append(work.place.key)
        if not play.was_cut and len(play.undos) == registered:
            return failure.outcome(unmade)
    except asyncio.CancelledError:
        if play.ending is None:
            raise
        play.forget_cancellation()
    except LeaseLost:
        play.ending = "lost"
    except WorkflowChanged:
        pass  # play knows
    finally:
        await play.close()
    stopped = _stopped(play)
    return HandedBack() if stopped is None else stopped
