"""Execution: a workflow's running code; what it may begin, waits for, and when it parks.

The code runs in the attempt's own task. When it can only wait, it is cancelled there and parks: everything it held is
let go, and the next attempt comes back to the same place by the record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from rowlock.errors import LeaseLost, WorkflowChanged, WorkflowError
from rowlock.model.outcome import Parked
from rowlock.model.spec import Handler
from rowlock.model.workflow.step import MOST_STEPS, Signal, StepKind, StepUpdate, StoredStep
from rowlock.workflow import branch as branches
from rowlock.workflow.branch import Branch, CallSite
from rowlock.workflow.history import History, waits_for_what_it_cut_off
from rowlock.workflow.state import WorkflowState
from rowlock.workflow.step_run import StepCall
from rowlock.workflow.waits import NextTry, Pending
from rowlock.workflow.worker_interface import AttemptHandle, Environment, LoadedHistory

# A step that has ended wakes its branch by way of a future, a task, perhaps a gather: it takes some turns of the loop.
# To park too early is safe, for the next attempt goes on from the record; it only costs that attempt.
_TURNS = 8
# So many steps are replayed from the record before others have their turn: a few milliseconds.
_REPLAYED_AT_ONCE = 250
# What still runs when the code has come to its end is cancelled, and waited for so many seconds.
_LEAVE_WITHIN = 2.0

StopReason = Literal["park", "fault", "reached", "cancel", "hand back", "lost", "changed"]


class Execution:
    """The code of one attempt, and what it has under way."""

    def __init__(
        self, held: AttemptHandle, handler: Handler, loaded: LoadedHistory, environment: Environment, *, replays: bool
    ) -> None:
        """With `replays`, nothing new is begun: the code is only brought to where the record ends."""
        self.held = held
        self.handler = handler
        self.environment = environment
        self.history = History(loaded.steps)
        self.inbox: list[Signal] = list(loaded.signals)
        self.replays = replays
        self.is_undoing = False
        self.undos: list[StepCall] = []
        self.ending: StopReason | None = None
        self.changed: WorkflowChanged | None = None
        self.fault: Exception | None = None  # why it could not park
        self.raised: BaseException | None = None  # by the code itself, whatever is around it makes of that
        self.has_progressed = False  # something was recorded in this attempt
        self.has_ended = False  # the code, by itself or because it was ended
        self.state = WorkflowState(self.history.start)
        self._since = loaded.at
        # A restart calls its steps by the same places again, and means others.
        self._run = held.row.id if self.history.restarts == 0 else f"{held.row.id}:{self.history.restarts}"
        self._main: asyncio.Task[Any] | None = None
        self._lazy: list[StepUpdate] = []
        self._children: list[str] = []  # enqueued by this attempt
        self._room = MOST_STEPS - len(self.history)
        self._counted: set[str] = set()  # keys of what is new
        self._active = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waits: dict[asyncio.Future[None], Pending] = {}
        self._waited: Sequence[Pending] = ()  # when it came to rest
        # Sleeps and signals that the code waits for no more, unless it comes back to them.
        self._let_go: set[str] = set()
        self._owed: set[asyncio.Task[Any] | None] = set()  # a cancellation, where they wait next
        self._is_closed = False
        self._is_interrupted = False
        self.was_cut = False  # something was under way when the code was ended
        self._replayed = 0
        self._moves = 0
        self._is_watching = False
        self._parking: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """This task runs the code, and whatever is around it."""
        self._main = asyncio.current_task()

    def enter(self) -> None:
        """Here the code begins."""
        branches.enter(Branch("", self._run))

    # What the code calls

    def place(self, name: str) -> CallSite:
        """Where the call stands that is being made."""
        return branches.current().place(name)

    def find(self, place: CallSite, kind: StepKind, given: str | None = None) -> StoredStep | None:
        """The record of a call, if it is not new."""
        try:
            return self.history.find(place, kind, given)
        except WorkflowChanged as changed:
            raise self.block(changed) from None

    def block(self, changed: WorkflowChanged) -> WorkflowChanged:
        """The code does not match the record: whatever it makes of that, the job waits for other code."""
        if self.changed is None:
            self.changed = changed
        self.end("changed")
        return changed

    def idempotency_key(self, place: CallSite) -> str:
        """What a step calls the outside by, in every attempt the same."""
        return f"{self._run}:{place.path}{place.position}"

    def later(self, record: StepUpdate) -> None:
        """Remember this when there is something else to write: nothing that was recorded can depend on it before."""
        self._lazy.append(record)

    async def gate(self) -> None:
        """Go on if something new may begin; else never."""
        await self._stop_if_over()
        if self.ending is None and self._parking is None:
            if self.held.lost is not None or not self.environment.store.is_ours():
                self.end("lost")
            elif self.held.cancel_requested and not self.is_undoing:
                self.end("cancel")
            elif self.environment.is_draining():
                self.end("hand back")  # between two steps is a good moment
            elif not self.replays:
                return
        await self._wait(NextTry())

    def has_replayed_many(self) -> bool:
        """Count one more step that is replayed from the record; now and then it is time to let others run."""
        self._replayed += 1
        return self._replayed % _REPLAYED_AT_ONCE == 0

    async def let_others_run(self) -> None:
        """A long replay waits for nothing: by itself it would hold the loop, and every other job on it, for seconds."""
        with self.busy():
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                if not self.replays or self.ending is not None or self._is_interrupted or self.is_stopping:
                    raise
                # A sibling has failed. Cut here, this branch would not come to all that it has recorded and is to undo,
                # in this replay and in every other one. So it is cancelled where it waits.
                self._owed.add(asyncio.current_task())

    async def write(self, records: Sequence[StepUpdate]) -> None:
        """Remember these, and what has been put off."""
        written, self._lazy = [*self._lazy, *records], []
        if not written:
            return
        self.count([record.key for record in written])
        fault: WorkflowError | None = None
        state: str | None = None
        try:
            state = self.state.unwritten()
        except WorkflowError as error:  # what is done is written all the same
            fault = None if self.is_undoing else error  # it may have failed of that
        await self.environment.store.record(self.held.row, written, state=state)
        self.state.wrote(state)
        self.has_progressed = True
        if fault is not None:
            self._fail(fault)

    def has_begun(self, key: str) -> bool:
        """Whether this attempt has begun a step of that key that is new."""
        return key in self._counted

    def count(self, keys: Iterable[str]) -> None:
        """These are remembered, or about to be: WorkflowError if that is more than a workflow may remember."""
        self._counted.update([key for key in keys if not self.history.knows(key)])
        if len(self._counted) > self._room and not self.is_undoing:
            there = f"{MOST_STEPS - self._room + len(self._counted):,}"
            raise WorkflowError(
                f"this workflow has {there} steps, and {MOST_STEPS:,} is the most that one remembers; go on with a "
                "fresh history by ctx.restart(…), or give parts of the work to children"
            )

    async def hold(self, pending: Pending) -> Any:  # noqa: ANN401  what it has come to
        """Wait, without being held: the result if there is one, else the attempt ends here."""
        result = pending.poll()
        if result is None:
            if children := pending.children():
                await self.gate()
                self.count([child.key for child in children])
                with self.busy():
                    await self.environment.store.spawn(self.held.row, children)
                self._children += [child.job.id for child in children]
            await self._wait(pending)
            raise AssertionError("a wait that was not answered has ended")
        if result.lazy:
            self._lazy.extend(result.records)
        elif result.records:
            await self.gate()
            with self.busy():
                await self.write(result.records)
        self._let_go.update(result.let_go)
        if isinstance(result.error, WorkflowChanged):
            raise self.block(result.error)
        if result.error is not None:
            raise result.error
        return result.value

    def busy(self) -> _Busy:
        """While something is under way, the code does not park."""
        return _Busy(self)

    def begin_work(self) -> asyncio.Task[Any] | None:
        """Something is under way, in a task that is not the code's own if one is returned."""
        self._active += 1
        task = asyncio.current_task()
        if task is self._main or task is None:
            return None
        self._tasks.add(task)
        return task

    def end_work(self, task: asyncio.Task[Any] | None, *, cut: bool) -> None:
        """It is over, or cut short."""
        self._active -= 1
        self.was_cut |= cut
        if task is not None:
            self._tasks.discard(task)
        self._move()

    # When nothing can go on

    async def _wait(self, pending: Pending) -> None:
        await self._stop_if_over()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waits[future] = pending
        self._move()
        try:
            await future
        except asyncio.CancelledError:
            if self.is_cut_by_code:
                self._let_go.update(pending.step_keys())
            raise
        finally:
            self._waits.pop(future, None)

    def _move(self) -> None:
        self._moves += 1
        if self._waits and not self._active and not self._is_watching:
            self._is_watching = True
            asyncio.get_running_loop().call_soon(self._watch, self._moves, _TURNS)

    def _watch(self, moves: int, turns: int) -> None:
        if self._active or not self._waits or self.ending is not None or self._parking is not None:
            self._is_watching = False
        elif moves != self._moves:
            asyncio.get_running_loop().call_soon(self._watch, self._moves, _TURNS)
        elif turns:
            asyncio.get_running_loop().call_soon(self._watch, moves, turns - 1)
        else:
            self._is_watching = False
            self._come_to_rest()

    def _come_to_rest(self) -> None:
        if self.replays:
            self.end("reached")
            return
        try:
            self.state.to_json()
        except WorkflowError as error:
            if not self.is_undoing:
                self._fail(error)
                return
        waits = self._waits.values()
        cuts = [one.cut_off for one in waits if isinstance(one, NextTry) and one.cut_off is not None]
        if len(cuts) == len(waits):
            self.block(waits_for_what_it_cut_off(cuts[0]))
            return
        records = [record for pending in waits for record in pending.opens()]
        records += self.history.closes(self._let_go.difference(*(pending.step_keys() for pending in waits)))
        if records:
            self._parking = asyncio.create_task(self._park(records))
        else:
            self.end("park")

    async def _park(self, records: Sequence[StepUpdate]) -> None:
        try:
            await self.write(records)
        except LeaseLost:
            self.end("lost")
        except Exception as error:  # there are too many steps, say
            self._fail(error)
        else:
            self.end("park")

    def _fail(self, fault: Exception) -> None:
        self.fault = fault
        self.end("fault")

    def parked(self) -> Parked:
        """How it is to wait."""
        needs = [pending.needs for pending in self._waited if pending.needs is not None]
        kinds = {pending.waits_for for pending in self._waited}
        return Parked(
            wakes_at=(self.held.row.wakes or 0) + min(needs) if needs else None,
            waits_for="signal" if "signal" in kinds else "children" if needs else None,
            since=self._since,
            undoing=self.is_undoing,
        )

    # The end

    def end(self, how: StopReason) -> None:
        """Bring the code to its end, wherever it is."""
        if self.ending is None:
            self.ending = how
            self._waited = list(self._waits.values())
            # Not at once: this may be the code's own task, and a cancellation that finds nothing to interrupt stays.
            asyncio.get_running_loop().call_soon(self._interrupt)

    def _interrupt(self) -> None:
        if self._main is not None and not self._is_closed:
            self._is_interrupted = True
            self._main.cancel()

    async def _stop_if_over(self) -> None:
        """The code goes on, perhaps in a `finally`, or in a task that it has left behind: no further than here."""
        task = asyncio.current_task()
        if self._is_interrupted or (self.is_undoing and task is not self._main) or task in self._owed:
            self._owed.discard(task)
            await asyncio.sleep(0)
            raise asyncio.CancelledError

    async def close(self) -> None:
        """The code has ended: let go of what it has left under way."""
        self._is_closed = self._is_interrupted = True
        for future in list(self._waits):
            future.cancel()
        if left := [task for task in self._tasks if not task.done()]:
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=_LEAVE_WITHIN)

    @property
    def was_stopped(self) -> bool:
        """Whether its worker has cancelled the attempt; code may raise CancelledError by itself."""
        return self._main is not None and self._main.cancelling() > 0

    @property
    def is_stopping(self) -> bool:
        """Whether its worker stops, or has lost the job, and has cancelled the attempt for that."""
        return self.was_stopped and (self.environment.is_draining() or self.held.lost is not None)

    @property
    def is_disturbed(self) -> bool:
        """Whether the attempt was cancelled from outside, so that what its code makes of that says nothing."""
        is_cancelled = self.held.cancel_requested and not self.held.row.cancelling
        return self.is_stopping or (self.was_stopped and is_cancelled)

    @property
    def is_cut_by_code(self) -> bool:
        """Whether a cancellation that comes now is the code's own doing, and not the end of the attempt."""
        is_over = self.ending is not None or self._is_closed or self._is_interrupted
        return not (is_over or self.is_disturbed or self.is_undoing)

    async def remember_sleeps(self) -> None:
        """Write down at the end which sleeps are over: the rest of what was put off is of no use any more."""
        if any(record.kind == "sleep" for record in self._lazy):
            await self.write([])

    def forget_cancellation(self) -> None:
        """The code was cancelled for a reason that is known; its task goes on to say so."""
        if self._main is not None:
            while self._main.cancelling():
                self._main.uncancel()

    def children_left(self) -> list[str]:
        """The children that have not ended, as far as is known."""
        return [*self.history.open_children(), *self._children]

    def begin_undo(self) -> None:
        """From here on it is undone: what the code has registered, and nothing that it would begin."""
        self.is_undoing, self.replays, self._is_closed, self._is_interrupted = True, False, False, False
        self.ending, self._parking = None, None
        self._waits.clear()  # the code's: it does not come back to them
        self.held.undoing = True


class _Busy:
    """A block in which something is under way."""

    __slots__ = ("_execution", "_task")

    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    def __enter__(self) -> None:
        self._task = self._execution.begin_work()

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        self._execution.end_work(self._task, cut=kind is asyncio.CancelledError)
