"""Waits: a signal, a moment, a child, the first of several; nothing is held meanwhile.

A wait is answered when an attempt begins, from what the database then has, or not at all in that attempt: nothing that
comes later is looked for, because the park that follows notices it by the count of wakes.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from rowlock.errors import ChildCancelled, ChildFailed, SignalTimeout
from rowlock.model.payload.arguments import Result
from rowlock.model.workflow.step import NewChild, Signal, StepUpdate, StoredStep
from rowlock.workflow.branch import CallSite
from rowlock.workflow.history import misfit
from rowlock.workflow.signal_schema import PayloadReader

T_co = TypeVar("T_co", covariant=True)


# What was remembered before the attempt began came before all that it finds.
_BEFORE = float("-inf")


class WaitResult(NamedTuple):
    """What a wait has come to, and what to remember of it before the code goes on."""

    value: Any = None
    error: BaseException | None = None
    records: Sequence[StepUpdate] = ()
    lazy: bool = False  # whether these records may wait until there is something else to write
    let_go: Sequence[str] = ()  # the sleeps and signals that lost


class First(NamedTuple):
    """Which of several waits was the first, by its place or its name, and what it came to."""

    which: Any
    value: Any


class Pending(ABC):
    """A wait that may be answered."""

    # How many wakes it takes until another look is worth it; None if no wake can answer it.
    needs: int | None = None
    waits_for: str | None = None

    _polled: WaitResult | None = None

    def poll(self) -> WaitResult | None:
        """The result, if there is one: it is taken and remembered once, however often this is called."""
        if self._polled is not None:
            return self._polled
        if (result := self._find()) is not None:
            self._polled = result._replace(records=())
        return result

    @abstractmethod
    def _find(self) -> WaitResult | None:
        """The result, if there is one."""

    def answered_at(self) -> float | None:
        """When what it waits for came, in seconds since 1970; None if that has not come."""
        return None

    def step_keys(self) -> list[str]:
        """The sleeps and signals that it waits for."""
        return []

    def opens(self) -> list[StepUpdate]:
        """The records to write before the workflow parks."""
        return []

    def children(self) -> list[NewChild]:
        """The children to enqueue before it can be waited for."""
        return []


class Wait(Coroutine[Any, Any, T_co]):
    """A wait of a workflow: await it, give it to gather or a TaskGroup, or to `ctx.any` with others."""

    __slots__ = ("_coroutine", "_hold", "pending")

    def __init__(self, pending: Pending, hold: Callable[[Pending], Coroutine[Any, Any, Any]]) -> None:
        self.pending = pending
        self._hold = hold
        self._coroutine: Coroutine[Any, Any, Any] | None = None

    def _begun(self) -> Coroutine[Any, Any, Any]:
        if self._coroutine is None:
            self._coroutine = self._hold(self.pending)
        return self._coroutine

    def __await__(self) -> Generator[Any, Any, T_co]:
        return self._begun().__await__()

    def send(self, value: Any) -> Any:  # noqa: ANN401  a coroutine's protocol
        """As a coroutine."""
        return self._begun().send(value)

    def throw(  # type: ignore[override]
        self,
        kind: type[BaseException] | BaseException,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> Any:  # noqa: ANN401  a coroutine's protocol
        """As a coroutine."""
        if error is None and trace is None:
            return self._begun().throw(kind)
        return self._begun().throw(kind, error, trace)  # type: ignore[arg-type]

    def close(self) -> None:
        """As a coroutine."""
        if self._coroutine is not None:
            self._coroutine.close()


class Timer(Pending):
    """The end of a sleep."""

    def __init__(
        self,
        place: CallSite,
        step: StoredStep | None,
        *,
        given: str,
        delay: timedelta | None = None,
        until: datetime | None = None,
    ) -> None:
        self._place = place
        self._step = step
        self._given = given
        self._delay = delay
        self._until = until

    def _find(self) -> WaitResult | None:
        """It is over when the database's clock says so."""
        step = self._step
        if step is not None and step.state == "done":
            return WaitResult()
        if step is not None and step.due:
            return WaitResult(records=[StepUpdate(step.key, step.position, "sleep", "done")], lazy=True)
        if step is None and self._delay is not None and self._delay <= timedelta(0):
            return WaitResult(records=[StepUpdate(self._place.key, self._place.position, "sleep", "done")], lazy=True)
        return None

    def answered_at(self) -> float | None:
        """Its end, if that is over."""
        step = self._step
        if step is None and self._polled is None:
            return _BEFORE if self._delay is not None and self._delay <= timedelta(0) else None
        if step is None or self._polled is not None or step.state == "done":
            return _BEFORE
        return step.until if step.due else None

    def step_keys(self) -> list[str]:
        """Itself."""
        return [self._place.key]

    def opens(self) -> list[StepUpdate]:
        """Its end, from now on; the one that it had, if it was closed."""
        if self._step is not None and self._step.state != "closed":
            return []
        if self._step is not None:
            return [StepUpdate(self._step.key, self._step.position, "sleep", "open", self._given)]
        key, _, position = self._place
        return [StepUpdate(key, position, "sleep", "open", self._given, delay=self._delay, until=self._until)]


class NextTry(Pending):
    """A step that is to be tried again later, in another attempt; or never, if its code has cut it off."""

    def __init__(self, cut_off: StoredStep | None = None) -> None:
        self.cut_off = cut_off

    def _find(self) -> WaitResult | None:
        """Not in this attempt."""
        return None


class SignalWait(Pending):
    """The first signal of a name that nobody has taken."""

    needs = 1
    waits_for = "signal"

    def __init__(
        self,
        place: CallSite,
        step: StoredStep | None,
        name: str,
        *,
        inbox: list[Signal],
        payload: PayloadReader,
        timeout: timedelta | None,
        form: str | None,
    ) -> None:
        self._place = place
        self._step = step
        self._name = name
        self._inbox = inbox
        self._payload = payload
        self._timeout = timeout
        self._form = form

    def _find(self) -> WaitResult | None:
        """What was taken before; else what is there; else, if its time is over, that."""
        step = self._step
        if step is not None and step.state == "done":
            return self._fitting(step.value, [])
        if step is not None and step.state == "failed":
            return WaitResult(error=SignalTimeout(self._name, step=step.key))
        if (signal := self._next()) is not None:
            self._inbox.remove(signal)
            key, _, position = self._place
            return self._fitting(
                signal.payload, [StepUpdate(key, position, "signal", "done", value=signal.payload, signal=signal.id)]
            )
        if step is not None and step.due:
            error = json.dumps({"type": "SignalTimeout", "message": f"no signal {self._name!r} has come in time"})
            return WaitResult(
                error=SignalTimeout(self._name, step=step.key),
                records=[StepUpdate(step.key, step.position, "signal", "failed", error=error)],
            )
        return None

    def _next(self) -> Signal | None:
        """The first that has come, and in time, whoever looks and when."""
        signal = next((one for one in self._inbox if one.name == self._name), None)
        deadline = self._step.until if self._step is not None else None
        return signal if signal is None or deadline is None or signal.sent_at <= deadline else None

    def answered_at(self) -> float | None:
        """When it was sent, or its time was over."""
        step = self._step
        if self._polled is not None or (step is not None and step.state in ("done", "failed")):
            return _BEFORE
        if (signal := self._next()) is not None:
            return signal.sent_at
        return step.until if step is not None and step.due else None

    def step_keys(self) -> list[str]:
        """Itself."""
        return [self._place.key]

    def _fitting(self, payload: str | None, records: Sequence[StepUpdate]) -> WaitResult:
        """It is taken whether it fits or not: one that does not is an error where it was waited for, each time."""
        try:
            return WaitResult(value=self._payload.decode(payload), records=records)
        except Exception as error:  # of a validator of the user's, too
            return WaitResult(error=error, records=records)

    def opens(self) -> list[StepUpdate]:
        """That it is waited for, with its form and its time-out; until when it was, if it was closed."""
        if self._step is not None and self._step.state != "closed":
            return []
        if self._step is not None:
            return [StepUpdate(self._step.key, self._step.position, "signal", "open", form=self._form)]
        key, _, position = self._place
        return [StepUpdate(key, position, "signal", "open", delay=self._timeout, form=self._form)]


class ChildWait(Pending):
    """The end of a child."""

    needs = 1
    waits_for = "children"

    def __init__(self, step: StoredStep | None, spawned: NewChild, result: Result) -> None:
        self._step = step
        self._spawned = spawned
        self._result = result

    def answered_at(self) -> float | None:
        """When the child ended."""
        return None if self._step is None or self._step.state == "open" else self._step.ended_at

    @property
    def is_new(self) -> bool:
        """Whether it is to be enqueued yet."""
        return self._step is None

    def _find(self) -> WaitResult | None:
        """What the statement that ended the child has left in its parent's record."""
        step = self._step
        if step is None or step.state == "open":
            return None
        if step.state == "failed":
            return WaitResult(error=_child_error(step))
        try:
            return WaitResult(value=self._result.decode(step.value))
        except Exception as error:  # of a validator of the user's, too
            return WaitResult(error=misfit(step.key, error))

    def children(self) -> list[NewChild]:
        """Itself, if it is new."""
        return [self._spawned] if self._step is None else []


def _child_error(step: StoredStep) -> BaseException:
    ending = json.loads(step.error or "{}")
    failure = ending.get("failure") or {}
    job, task, reason = UUID(str(step.child)), str(ending.get("task")), str(ending.get("reason"))
    if ending.get("outcome") == "cancelled":
        return ChildCancelled(job, task, reason, step.key)
    return ChildFailed(
        job,
        task,
        step=step.key,
        reason=reason,
        error_type=str(failure.get("type", "unknown")),
        message=str(failure.get("message", "")),
        remote_traceback=str(failure.get("traceback", "")),
    )


class FirstOf(Pending):
    """The first of several waits: which it was is remembered, for later others may be answered too."""

    def __init__(self, place: CallSite, step: StoredStep | None, waits: Sequence[tuple[Any, Pending]]) -> None:
        self._place = place
        self._step = step
        self._waits = waits
        needs = [pending.needs for _, pending in waits if pending.needs is not None]
        self.needs = min(needs, default=None)
        kinds = {pending.waits_for for _, pending in waits} - {None}
        self.waits_for = "signal" if "signal" in kinds else next(iter(kinds), None)

    def _find(self) -> WaitResult | None:
        """The one that was first, or is: of several that are there now, the one that came first."""
        if self._step is not None and self._step.state == "done":
            index = json.loads(self._step.value or "0")
            return self._won(index, self._waits[index][1].poll(), [])
        came = [(at, index) for index, (_, one) in enumerate(self._waits) if (at := one.answered_at()) is not None]
        if not came:
            return None
        _, index = min(came)
        key, _, position = self._place
        record = StepUpdate(key, position, "any", "done", value=json.dumps(index))
        return self._won(index, self._waits[index][1].poll(), [record])

    def answered_at(self) -> float | None:
        """When the first of them came."""
        if self._polled is not None or (self._step is not None and self._step.state == "done"):
            return _BEFORE
        return min((at for _, one in self._waits if (at := one.answered_at()) is not None), default=None)

    def step_keys(self) -> list[str]:
        """Those of all of them."""
        return [key for _, pending in self._waits for key in pending.step_keys()]

    def _won(self, index: int, result: WaitResult | None, records: list[StepUpdate]) -> WaitResult | None:
        if result is None:
            return None
        name = self._waits[index][0]
        lost = [key for at, (_, one) in enumerate(self._waits) if at != index for key in one.step_keys()]
        return WaitResult(
            First(name, result.value), result.error, [*result.records, *records], let_go=[*result.let_go, *lost]
        )

    def opens(self) -> list[StepUpdate]:
        """All of them."""
        return [record for _, pending in self._waits for record in pending.opens()]

    def children(self) -> list[NewChild]:
        """Those of all of them."""
        return [child for _, pending in self._waits for child in pending.children()]


class AllOf(Pending):
    """The ends of many children, of which so many run at once."""

    waits_for = "children"

    def __init__(self, children: Sequence[ChildWait], *, at_once: int | None) -> None:
        self._children = children
        open_now = sum(not child.is_new and child.poll() is None for child in children)
        new = [child for child in children if child.is_new]
        room = len(new) if at_once is None else max(0, at_once - open_now)
        self._next = new[:room]
        live = open_now + len(self._next)
        # Half of those at once may end before others follow: to follow each would mean to be replayed for each.
        self.needs = live if len(self._next) == len(new) else max(1, live // 2)
        self.is_over = not live

    def _find(self) -> WaitResult | None:
        """What each has come to, in their order."""
        return WaitResult([child.poll() for child in self._children]) if self.is_over else None

    def children(self) -> list[NewChild]:
        """Those whose turn it is."""
        return [spawned for child in self._next for spawned in child.children()]
