"""Step run: the functions that steps call, and their tries, each recorded at once."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID
from weakref import WeakKeyDictionary

from pydantic_core import to_json

from rowlock.db.borrowed.joining import TransactionEnd
from rowlock.errors import Interruption, LeaseLost, RetryAfter, RowlockError, Snooze, StepFailed, WorkflowError
from rowlock.model.failure import describe, recalled
from rowlock.model.payload.arguments import Result
from rowlock.model.retry import Retry
from rowlock.model.spec import Handler
from rowlock.model.workflow.step import StepKind, StepUpdate, StoredStep
from rowlock.store import jobs
from rowlock.store.query import Conversation
from rowlock.store.workflows import steps as store
from rowlock.workflow import logs
from rowlock.workflow.branch import CallSite, inside_step
from rowlock.workflow.history import misfit
from rowlock.workflow.waits import NextTry

if TYPE_CHECKING:
    from rowlock.workflow.execution import Execution

# Longer inputs are not remembered, and so not compared: a record is no place for documents.
_LONGEST_INPUT = 16 * 1024
_LONGEST_NAME = 200

# What both ways to write JSON write alike: they must, for an enumeration may come back as what it stands for.
_SCALARS = frozenset({str, int, bool, type(None)})
_PLAIN = json.JSONEncoder(sort_keys=True, allow_nan=False, ensure_ascii=False, separators=(",", ":"))

_ANY_RESULT = Result.untyped("the result of a step")

_infos: WeakKeyDictionary[Callable[..., Any], FunctionInfo] = WeakKeyDictionary()


class StepCall(NamedTuple):
    """A step: what it calls, and how often it is tried."""

    place: CallSite
    kind: StepKind
    function: Callable[..., Any]
    info: FunctionInfo
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    given: str | None
    retry: Retry
    timeout: timedelta | None = None
    connection: object | None = None


class FunctionInfo(NamedTuple):
    """A function that steps call: whether it is awaited on the loop, else it runs in a thread; its result's codec."""

    is_async: bool
    result: Result


def function_of(called: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, where a task is given."""
    handler = getattr(called, "handler", None)
    if not isinstance(handler, Handler):
        return called
    if handler.is_workflow:
        raise WorkflowError(
            f"{handler.spec.name!r} is a workflow, and no step of another; run it as a child: ctx.run(….bind(…))"
        )
    return handler.function


def info_of(function: Callable[..., Any]) -> FunctionInfo:
    """The same for every step of this function: found out once."""
    try:
        info = _infos.get(function)
        if info is None:
            info = _infos[function] = _found_out(function)
    except TypeError:  # it takes no weak reference, or is not hashable
        return _found_out(function)
    return info


def _found_out(function: Callable[..., Any]) -> FunctionInfo:
    return FunctionInfo(is_async=_is_async(function), result=Result.of(function))


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def name_of(function: Callable[..., Any]) -> str:
    """What a step of it is called unless it is given a name."""
    name = getattr(function, "__name__", None) or type(function).__name__
    if name == "<lambda>":
        raise WorkflowError("a lambda has no name to be remembered by; say ctx.using(name=…).step(…)")
    return name


@lru_cache(1024)  # every step asks
def check_name(name: str) -> str:
    """A name of a step or a signal: printable, and without what stands between it and its branch or number."""
    if not name or not name.isprintable() or "/" in name or "#" in name:
        raise WorkflowError(f"{name!r} cannot name a step or a signal: use printable characters other than / and #")
    if len(name.encode()) > _LONGEST_NAME:
        raise WorkflowError(f"the name {name[:40]!r}… is longer than {_LONGEST_NAME} bytes")
    return name


def input_of(args: Sequence[object], kwargs: Mapping[str, object]) -> str | None:
    """What a call is given, where that is plain JSON and short: a replay must give the same."""
    if not args and not kwargs:
        return None
    try:
        if not kwargs and _SCALARS.issuperset(map(type, args)):  # most are, and every step asks
            text = to_json(args).decode()
        else:
            text = _PLAIN.encode([*args, kwargs] if kwargs else args)
    except (TypeError, ValueError, RecursionError):
        return None
    return text if len(text) <= _LONGEST_INPUT and "\\u0000" not in text and text.isprintable() else None


async def run(execution: Execution, work: StepCall, step: StoredStep | None) -> Any:  # noqa: ANN401  what the step returns
    """The result of a step: from the record, or of its next try."""
    if step is not None and step.state == "done":
        if execution.has_replayed_many():
            await execution.let_others_run()
        return _decoded(execution, work, step.value)
    if step is not None and step.state == "failed":
        raise _failed(step.key, step.error, step.attempts)
    if step is not None and step.state == "closed":
        await execution.hold(NextTry(cut_off=step))
    try:
        if step is not None and not step.due:
            await execution.hold(NextTry())
        await execution.gate()
        execution.count([work.place.key])  # before it runs: what cannot be recorded would be done again and again
        return await _try(execution, work, 0 if step is None else step.attempts)
    except asyncio.CancelledError:
        await _remember_cut(execution, work, step)
        raise


async def _remember_cut(execution: Execution, work: StepCall, step: StoredStep | None) -> None:
    """Its own code has cut the step off: each replay would begin it again, as long as nothing says so."""
    if execution.is_cut_by_code and not execution.replays and (step is not None or execution.has_begun(work.place.key)):
        key, _, position = work.place
        attempts = 0 if step is None else step.attempts
        with execution.busy():
            await execution.write([StepUpdate(key, position, work.kind, "closed", work.given, attempts=attempts)])


async def _try(execution: Execution, work: StepCall, failures: int) -> Any:  # noqa: ANN401  as above
    began = time.perf_counter()
    failed: StepFailed | None = None
    with execution.busy():
        try:
            text, is_written = await _called(execution, work, failures, began)
        except BaseException as error:
            if _goes_through(work, error):
                raise
            if execution.is_stopping:  # what the function makes of its cancellation is no failure
                raise asyncio.CancelledError from error
            record = _verdict(work, error, failures, time.perf_counter() - began)
            await execution.write([record])
            if record.error is not None:
                logs.log_step_failure(execution.held.row, record, of=work.retry.attempts, error=_shown(error))
            # The error of a transaction may be that of a commit whose reply was lost. If that step is done after all,
            # this has changed nothing, and the next attempt is told.
            if record.state == "failed" and work.kind != "transaction":
                failed = _failed(record.key, record.error, record.attempts)
        else:
            if not is_written:
                await _keep(execution, work, _done(work, text, failures, time.perf_counter() - began))
            return _decoded(execution, work, text)
    if failed is not None:  # here, where it has no cause: in a replay it has none either
        raise failed
    await execution.hold(NextTry())
    return None


async def _keep(execution: Execution, work: StepCall, done: StepUpdate) -> None:
    """Record what a step has returned; it has failed if there is no room for that, or PostgreSQL refuses it."""
    try:
        await execution.write([done])
    except WorkflowError as error:
        record = _verdict(work, _Misfit(error), done.attempts, done.ago)
    else:
        return
    await execution.write([record])
    raise _failed(record.key, record.error, record.attempts)


def _decoded(execution: Execution, work: StepCall, text: str | None) -> Any:  # noqa: ANN401  what the step returns
    """A result as it is recorded; where it does not fit, the workflow is blocked until the code does."""
    try:
        return work.info.result.decode(text)
    except Exception as error:  # of a validator of the user's, too
        raise execution.block(misfit(work.place.key, error)) from None


async def _called(execution: Execution, work: StepCall, failures: int, began: float) -> tuple[str | None, bool]:
    """One try: the JSON of what the function returns, and whether that has been written with it."""
    if work.timeout is None:
        return await _answered(execution, work, failures, began)
    seconds = work.timeout.total_seconds()
    async with asyncio.timeout(seconds) as limit:
        try:
            return await _answered(execution, work, failures, began)
        except asyncio.CancelledError:
            if limit.expired():
                raise TimeoutError(f"step {work.place.key!r} took longer than its timeout of {seconds:g} s") from None
            raise


async def _answered(execution: Execution, work: StepCall, failures: int, began: float) -> tuple[str | None, bool]:
    if work.kind == "transaction":
        return await _in_transaction(execution, work, failures, began), True
    with inside_step(execution.idempotency_key(work.place)):
        if work.info.is_async:
            value = await work.function(*work.args, **work.kwargs)
        else:
            value = await execution.environment.in_thread(
                execution.held, partial(work.function, *work.args, **work.kwargs)
            )
    return _encoded(work, value), False


async def _in_transaction(execution: Execution, work: StepCall, failures: int, began: float) -> str | None:
    """The function's writes and the record of the step, in one commit: the record is the last thing said before it."""
    text: str | None = None

    def last() -> Conversation[None]:
        return _recorded(execution, _done(work, text, failures, time.perf_counter() - began))

    words = TransactionEnd(last, lambda: None)
    transactions, connection = execution.environment.transactions, work.connection

    async def on_loop() -> None:
        nonlocal text, connection
        connection = transactions.choose(connection)
        async with transactions.atransaction(connection, words) as lent:
            text = _encoded(work, await work.function(lent, *work.args, **work.kwargs))

    def in_thread() -> None:
        nonlocal text, connection
        connection = transactions.choose(connection)  # in the thread to which it may belong
        with transactions.transaction(connection, words) as lent:
            text = _encoded(work, work.function(lent, *work.args, **work.kwargs))

    try:
        with inside_step(execution.idempotency_key(work.place)):
            await (on_loop() if work.info.is_async else execution.environment.in_thread(execution.held, in_thread))
    except LeaseLost as error:
        if connection is None:
            raise
        # That connection may lead to another database: then the job is ours still, and to hand it back would be to do
        # the same forever. If the lease is lost indeed, this error cannot be written either.
        raise RowlockError(str(error)) from error
    return text


def _recorded(execution: Execution, record: StepUpdate) -> Conversation[None]:
    row = execution.held.row
    query = store.record([(row, record)], told={})
    # It passes over a row that somebody has locked, as one who sends a signal has it: then wait for it.
    if not ((yield query) or ((yield jobs.lock(row.id)) and (yield query))):
        raise LeaseLost(
            UUID(row.id),
            f"job {row.id} of {row.task} is not this attempt's any more, or the connection leads to another database; "
            "what the transaction wrote is rolled back",
        )


def _encoded(work: StepCall, value: object) -> str | None:
    try:
        return work.info.result.encode(value)
    except Interruption:
        raise
    except Exception as fault:  # of a result that cannot be stored, or of its own serializer
        if (text := _refused_by_its_type(work, value)) is None:
            raise _Misfit(fault) from fault
        return text


def _refused_by_its_type(work: StepCall, value: object) -> str | None:
    """The JSON of a result that only its annotation refuses; None for any other.

    What the function did is done: its result is kept for code that it fits, and is not computed again.
    """
    try:
        text = _ANY_RESULT.encode(value)
    except Exception:  # of a value that is not plain JSON, or too long
        return None
    try:
        work.info.result.decode(text)
    except Exception:  # of a validator of the user's, too
        return text
    return None


def _verdict(work: StepCall, error: BaseException, failures: int, took: float) -> StepUpdate:
    """What becomes of a step after an error: another try later, or none."""
    key, _, position = work.place
    if isinstance(error, Snooze):
        return StepUpdate(
            key, position, work.kind, "retrying", work.given, attempts=failures, delay=error.delay, ago=took
        )
    wanted = isinstance(error, RetryAfter) or (not isinstance(error, _Misfit) and work.retry.wants(error))
    failure = describe(_shown(error)).to_json()
    failures += 1
    if failures >= work.retry.attempts or not wanted:
        return StepUpdate(key, position, work.kind, "failed", work.given, error=failure, attempts=failures, ago=took)
    delay = error.delay if isinstance(error, RetryAfter) else work.retry.delay(failures, random.random)
    return StepUpdate(
        key, position, work.kind, "retrying", work.given, error=failure, attempts=failures, delay=delay, ago=took
    )


def _done(work: StepCall, text: str | None, failures: int, took: float) -> StepUpdate:
    key, _, position = work.place
    return StepUpdate(key, position, work.kind, "done", work.given, value=text, attempts=failures, ago=took)


def _failed(key: str, error: str | None, attempts: int) -> StepFailed:
    failure = recalled(error)
    return StepFailed(
        key,
        error_type=failure.type,
        message=failure.message,
        remote_traceback=failure.traceback,
        attempts=attempts,
    )


def _goes_through(work: StepCall, error: BaseException) -> bool:
    """Whether an error ends more than this try.

    A cancellation of the task that runs it does, and what a step says to its workflow (Cancel, say). An undo has
    nothing to say: if its error escaped, the others would not run.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0  # else it is the function's own, as of a task that it waited for
    if isinstance(error, LeaseLost):
        return True
    return work.kind != "undo" and isinstance(error, Interruption) and not isinstance(error, Snooze | RetryAfter)


class _Misfit(Exception):
    """The function has done its work, and what it returns cannot be stored: to do it again is not the cure."""

    def __init__(self, fault: Exception) -> None:
        self.fault = fault


def _shown(error: BaseException) -> BaseException:
    """The error as its function, or its result, has raised it."""
    return error.fault if isinstance(error, _Misfit) else error
