"""Workflow attempt: one attempt, from what the workflow remembers to its outcome.

Its code runs from the top; the results of what it did before come from the record. It ends by parking, or for good; if
it fails or is cancelled, it undoes first what it has registered. A fault of the code, or of what is around it, ends
nothing: the workflow is blocked, and tried again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from rowlock.errors import (
    Cancel,
    ChildCancelled,
    ChildFailed,
    Interruption,
    LeaseLost,
    RetryAfter,
    SignalTimeout,
    Snooze,
    StepFailed,
    WorkflowChanged,
    WorkflowError,
)
from rowlock.model.failure import Failure, describe, reason_of
from rowlock.model.outcome import Blocked, Cancelled, Failed, HandedBack, Restarted, Snoozed, Succeeded, Unsettled
from rowlock.model.row import ClaimedJob
from rowlock.model.spec import Handler
from rowlock.model.workflow.step import StepUpdate
from rowlock.workflow import step_run
from rowlock.workflow.context import Context, Restart
from rowlock.workflow.execution import Execution
from rowlock.workflow.history import History
from rowlock.workflow.worker_interface import AttemptHandle, Environment

# A workflow that so many workers died of has failed, and is undone; if as many more die of that, it is left as it is.
MOST_CRASHES = 3

# What a workflow may fail of without declaring it.
_BUSINESS = (StepFailed, ChildFailed, ChildCancelled, SignalTimeout)
# A fault is tried again after so long, and after twice as long each time.
_FIRST_DELAY, _LONGEST_DELAY = timedelta(seconds=5), timedelta(minutes=15)
_MOST_DOUBLED = 8

# Calls a workflow's function, which has its context, with the arguments, inside of whatever is around it.
Calls = Callable[[Callable[..., Any]], Awaitable[object]]


class AttemptResult(NamedTuple):
    """An attempt's outcome, and the last `ctx.state`, if that has not been written yet."""

    outcome: Unsettled
    state: str | None = None


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
    environment: Environment,
    call: Calls,
    *,
    on_error: Callable[[BaseException], object] | None = None,
) -> AttemptResult:
    """Run one attempt. CancelledError if it was stopped, and not because somebody asked to cancel the workflow."""
    row = held.row
    if row.crashes >= 2 * MOST_CRASHES:
        return AttemptResult(_Failure(poison(), "poison").outcome(["its workers died of that, too"]))
    loaded = await environment.store.load(row)
    if row.version != handler.version:
        return AttemptResult(await _carried_over(row, handler, environment, History(loaded.steps)))
    ends = row.cancelling or row.expired or row.crashes >= MOST_CRASHES
    execution = Execution(held, handler, loaded, environment, replays=bool(ends))
    execution.replays |= execution.history.failure is not None
    verdict = await _brought_to_end(execution, call, on_error)
    if isinstance(verdict, _Failure):
        verdict = await _undone(execution, verdict)
    if isinstance(verdict, Succeeded | Failed | Cancelled):
        await execution.remember_sleeps()
    if isinstance(verdict, Succeeded | Failed | Cancelled | Restarted) and (left := execution.children_left()):
        await environment.store.abandon(left)
    return AttemptResult(verdict, None if isinstance(verdict, Blocked) else execution.state.last())


async def _carried_over(row: ClaimedJob, handler: Handler, environment: Environment, history: History) -> Unsettled:
    """A workflow of an earlier version goes on as this one, with its state carried over and a fresh history."""
    said = await environment.store.state(row)
    try:
        state = json.loads(said or "{}")
        for carry in handler.carries:
            state = carry(state)
        carried = json.dumps(state, allow_nan=False)
    except BaseException as error:  # the functions are the user's: Cancel and SystemExit are no state either
        versions = f"the state of version {row.version} could not be carried over to version {handler.version}"
        return fault(row, error, f"{versions}: {{}}; fix the migration")
    if left := history.open_children():
        await environment.store.abandon(left)
    return Restarted(row.args, handler.version or 1, carried)


# The code


async def _brought_to_end(
    execution: Execution, call: Calls, on_error: Callable[[BaseException], object] | None
) -> _Verdict:
    """Run the code until it returns, raises, or is ended; `on_error` is called with an error as it was raised."""
    execution.begin()
    try:
        verdict = await _verdict_of(execution, call, on_error)
    finally:
        await execution.close()
    if execution.is_disturbed and execution.ending is None:
        # The attempt was cancelled, and the code made something else of that. Its verdict counts for nothing: the next
        # attempt comes to one that was not disturbed.
        return HandedBack()
    if isinstance(verdict, Blocked) and not execution.has_ended:  # it has not come to all that it is to undo
        return verdict
    return _by_decision(execution, verdict if execution.fault is None else _raised(execution, execution.fault))


async def _verdict_of(
    execution: Execution, call: Calls, on_error: Callable[[BaseException], object] | None
) -> _Verdict | None:
    """What the code comes to; None where it was ended, or disturbed, before it came to an end by itself."""
    try:
        result = await call(partial(_code, execution))
    except asyncio.CancelledError as error:
        if execution.ending is None and not execution.held.cancel_requested:
            if execution.was_stopped:
                raise
            return _raised(execution, error)
        execution.forget_cancellation()
        return None
    except LeaseLost:
        return HandedBack()
    except BaseException as error:
        if on_error is not None:
            on_error(error)
        return _judged(execution, error)
    # What is around the code may have swallowed its error.
    return _succeeded(execution, result) if execution.raised is None else _judged(execution, execution.raised)


def _judged(execution: Execution, error: BaseException) -> _Verdict | None:
    if execution.ending is not None or execution.is_disturbed:
        return None
    if error is execution.raised or isinstance(error, Interruption):
        return _raised(execution, error)
    return _fault(execution, error, "what is around its code raised {}")


async def _code(execution: Execution, *args: object, **kwargs: object) -> object:
    execution.enter()
    try:
        return await execution.handler.function(Context(execution), *args, **kwargs)
    except BaseException as error:
        execution.raised = error
        raise
    finally:
        execution.has_ended = True


def _succeeded(execution: Execution, result: object) -> _Verdict:
    if not execution.replays and (blocked := _past_its_record(execution, "the code has come to its end")) is not None:
        return blocked
    try:
        execution.state.to_json()
        return Succeeded(execution.handler.result.encode(result), undoable=bool(execution.undos))
    except Exception as error:  # of a result that cannot be stored, or of its own serializer
        return _fault(execution, error, "what it returns does not fit: {}; its steps are done, and stay so")


def _past_its_record(execution: Execution, does: str) -> Blocked | None:
    """The workflow is blocked if its record goes on where its code ends."""
    try:
        execution.history.check_end(does)
    except WorkflowChanged as changed:
        return Blocked("code", reason_of(str(execution.block(changed))))
    return None


def _raised(execution: Execution, error: BaseException) -> _Verdict:
    match error:
        case WorkflowChanged():
            return Blocked("code", reason_of(str(error)))
        case Snooze() | RetryAfter():
            return Snoozed(error.delay)
        case Restart():
            does = "the code restarts"
        case _:
            does = f"the code raises {describe(error).first_line}"
    return _past_its_record(execution, does) or _ended_by(execution, error)


def _ended_by(execution: Execution, error: BaseException) -> _Verdict:
    match error:
        case Restart() if not execution.replays:
            return _restarted(execution, error.arguments)
        case Cancel():
            return _Failure(None, reason_of(error.reason))
        case _ if _is_business(error, (*_BUSINESS, *execution.handler.spec.fails_on)):
            return _Failure(_failure_of(error).to_json(), "raised", _step_behind(error))
        case _:
            says = "its code raised {}; a workflow fails only of errors named in fails_on="
            return _fault(execution, error, says)


def _failure_of(error: BaseException) -> Failure:
    """The error that a workflow fails of, as callers and filters see it: that of the step or child itself."""
    failure = describe(error)
    if not isinstance(error, StepFailed | ChildFailed):
        return failure
    return replace(failure, type=error.error_type, message=failure.message.replace(f"{error.error_type}: ", "", 1))


def _is_business(error: BaseException, declared: tuple[type[BaseException], ...]) -> bool:
    """Whether a workflow may fail of it: a group, if it may of each of its errors."""
    if isinstance(error, declared):
        return True
    return isinstance(error, BaseExceptionGroup) and all(_is_business(one, declared) for one in error.exceptions)


def _fault(execution: Execution, error: BaseException, says: str) -> Blocked:
    return fault(execution.held.row, error, says, failures=0 if execution.has_progressed else None)


def fault(row: ClaimedJob, error: BaseException, says: str, *, failures: int | None = None) -> Blocked:
    """What a fault of the code or of its surroundings comes to; `says` has {} where the error stands.

    `failures` is how many there were since something was recorded, if that is not what stands on the row.
    """
    failure = describe(error)
    doubled = min(row.failures if failures is None else failures, _MOST_DOUBLED)
    delay = min(_FIRST_DELAY * 2**doubled, _LONGEST_DELAY)
    return Blocked("code", reason_of(says.replace("{}", failure.first_line)), failure.to_json(), delay)


def _restarted(execution: Execution, arguments: str) -> _Verdict:
    try:
        return Restarted(arguments, execution.handler.version or 1, execution.state.to_json())
    except WorkflowError as error:
        return _fault(execution, error, "it cannot restart: {}")


def _step_behind(error: BaseException) -> str | None:
    """The step whose failure an error is, or comes from; of a group, that of the first of its errors that has one."""
    visited: set[int] = set()
    ahead: list[BaseException | None] = [error]
    while ahead:
        behind = ahead.pop()
        if behind is None or id(behind) in visited:
            continue
        if isinstance(behind, StepFailed | ChildFailed | ChildCancelled | SignalTimeout):
            return behind.step
        visited.add(id(behind))
        ahead.append(behind.__cause__ or behind.__context__)
        if isinstance(behind, BaseExceptionGroup):
            ahead += reversed(behind.exceptions)
    return None


def _by_decision(execution: Execution, verdict: _Verdict | None) -> _Verdict:
    """What counts: that the code does not match, that it was ended, what was decided earlier; then how it ended."""
    row = execution.held.row
    if (stopped := _stopped(execution)) is not None:
        return stopped
    # A cancel interrupts the code wherever it is, perhaps before it came to all of its undos. A replay comes to them.
    if isinstance(verdict, HandedBack) or (execution.held.cancel_requested and not row.cancelling):
        return HandedBack()
    if row.cancelling or row.expired:
        return _Failure(None, "expired" if row.expired else "asked")
    if (decided := execution.history.failure) is not None:
        decision = json.loads(decided.value or "{}")
        return _Failure(decided.error, decision["reason"], decision["step"])
    if row.crashes >= MOST_CRASHES:
        return _Failure(poison(), "poison")
    if verdict is None:
        raise AssertionError("the code has ended, and nobody knows how")
    return verdict


def _stopped(execution: Execution) -> Unsettled | None:
    """What became of an attempt that was ended before its code was."""
    if execution.changed is not None:
        return Blocked("code", reason_of(str(execution.changed)))
    if execution.ending == "park":
        return execution.parked()
    return HandedBack() if execution.ending in ("hand back", "lost") else None


def poison() -> str:
    """The failure that is stored of a job that workers died of."""
    return json.dumps(
        {"type": "WorkerLost", "message": f"{MOST_CRASHES} workers died while they ran it", "traceback": ""}
    )


# Undoing


async def _undone(execution: Execution, failure: _Failure) -> Unsettled:
    """Undo what the code has registered, the latest first; each is remembered, and tried again by its own policy.

    The workflow ends only when the last of them has ended; however else this is left, another attempt goes on with it.
    """
    execution.begin_undo()
    try:
        if execution.history.failure is None and not execution.held.row.cancelling:
            decision = json.dumps({"reason": failure.reason, "step": failure.step})
            with execution.busy():
                await execution.write(
                    [StepUpdate("failure", 0, "failure", "done", value=decision, error=failure.error)]
                )
        unmade: list[str] = []
        registered = len(execution.undos)
        # What was cut short may be recorded all the same, and what follows it in the code, an undo perhaps, was not
        # registered, or only now, by a task that would not end. A replay comes to all of it.
        for work in () if execution.was_cut else reversed(execution.undos[:registered]):
            try:
                await step_run.run(execution, work, execution.find(work.place, "undo", work.given))
            except StepFailed:
                unmade.append(work.place.key)
        if not execution.was_cut and len(execution.undos) == registered:
            return failure.outcome(unmade)
    except asyncio.CancelledError:
        if execution.ending is None:
            raise
        execution.forget_cancellation()
    except LeaseLost:
        execution.ending = "lost"
    except WorkflowChanged:
        pass  # the execution knows
    finally:
        await execution.close()
    stopped = _stopped(execution)
    return HandedBack() if stopped is None else stopped
