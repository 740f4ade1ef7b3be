"""Workflow check: replays recorded histories against this process's code, and reports where they differ.

Nothing is written, no step is called, no job is claimed. Before a deploy it shows whether live workflows could go on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, Never, TypeVar
from uuid import UUID

from rowlock.app.verbs import Exchange
from rowlock.db.database import Database
from rowlock.errors import RowlockError
from rowlock.model.failure import describe
from rowlock.model.names import versioned
from rowlock.model.record import State
from rowlock.model.row import ClaimedJob
from rowlock.model.spec import Handler
from rowlock.model.workflow.record import CheckedWorkflow, Verdict, WorkflowCheck
from rowlock.model.workflow.step import StoredStep
from rowlock.store import schema
from rowlock.store.query import Conversation
from rowlock.store.workflows import records
from rowlock.store.workflows.records import WorkflowFilter
from rowlock.store.workflows.steps import RecalledWorkflow, recall_steps, recall_workflows
from rowlock.worker.attempt import CurrentJob, RunningAttempt, ignore_progress, running
from rowlock.worker.transaction import TransactionResources
from rowlock.workflow.check import ReplayEnvironment, difference

T = TypeVar("T")

LIVE: Final[tuple[State, ...]] = ("waiting", "parked", "ready", "running")
ENDED: Final[tuple[State, ...]] = ("succeeded", "failed", "cancelled")
# So many are read at once, each with all that it remembers.
_AT_ONCE: Final = 20


class _Chunk(NamedTuple):
    """Some workflows with their histories, when they were read, and where the next are."""

    now: datetime
    found: list[tuple[RecalledWorkflow, list[StoredStep]]]
    next: UUID | None


class Check:
    """One check, of at most so many workflows."""

    def __init__(
        self, database: Database, handlers: Mapping[str, Handler], *, workflow: str | None, ended: bool, limit: int
    ) -> None:
        self._reading = Exchange(database, self._read, atomic=False)
        self._handlers = handlers
        self._wanted = WorkflowFilter(workflow=workflow, states=(*LIVE, *ENDED) if ended else LIVE)
        self._left = limit
        self._before: UUID | None = None
        self._is_whole = False
        self._checked: list[CheckedWorkflow] = []

    def run(self) -> WorkflowCheck:
        """Check them in a loop of their own."""
        with asyncio.Runner() as runner:
            while self._goes_on:
                runner.run(self._replay(self._reading.hold()))
        return self._result

    async def arun(self) -> WorkflowCheck:
        """Check them in this loop."""
        while self._goes_on:
            await self._replay(await self._reading.ahold())
        return self._result

    @property
    def _goes_on(self) -> bool:
        return self._left > 0 and not self._is_whole

    @property
    def _result(self) -> WorkflowCheck:
        return WorkflowCheck(tuple(self._checked), is_whole=self._is_whole)

    def _read(self) -> Conversation[_Chunk]:
        """Read the next few, and what they remember."""
        [now] = yield schema.now()
        page = yield from records.page(self._wanted, limit=min(self._left, _AT_ONCE), before=self._before)
        ids = [str(record.id) for record in page.records]
        remembered: dict[str, list[StoredStep]] = {one: [] for one in ids}
        found: list[RecalledWorkflow] = yield recall_workflows(ids)
        for job, step in (yield recall_steps(ids)):
            remembered[job].append(step)
        return _Chunk(now, [(one, remembered[one.id]) for one in sorted(found, reverse=True)], page.next)

    async def _replay(self, some: _Chunk) -> None:
        self._left -= _AT_ONCE
        self._before, self._is_whole = some.next, some.next is None
        for one, steps in some.found:
            handler = self._handlers.get(versioned(one.workflow, one.version))
            if handler is None or (handler.version != one.version and one.state in ENDED):
                self._add(one, "no code", None)
                continue
            if handler.version == one.version:
                # In a task, which has a context of its own.
                fault = await asyncio.create_task(_replayed(one, handler, steps, some.now))
            else:
                fault = _carried_over(one, handler)
            self._add(one, "fits" if fault is None else "differs", fault)

    def _add(self, one: RecalledWorkflow, verdict: Verdict, fault: str | None) -> None:
        self._checked.append(
            CheckedWorkflow(UUID(one.id), one.workflow, one.version, one.state, one.key, verdict, fault)
        )


async def _replayed(one: RecalledWorkflow, handler: Handler, steps: list[StoredStep], now: datetime) -> str | None:
    row = _row(one)
    nobody = ReplayEnvironment(now)
    resources = TransactionResources(
        transactions=nobody, handlers={}, keep=lambda *_: timedelta(0), last_progress=lambda _: ()
    )
    running.set(CurrentJob(RunningAttempt(row), ignore_progress, _Silent(), resources))
    return await difference(row, handler, steps, now=now)


def _carried_over(one: RecalledWorkflow, handler: Handler) -> str | None:
    """Why the state of a workflow whose version is gone could not be carried over to the code that there is."""
    try:
        state = json.loads(one.workflow_state or "{}")
        for carry in handler.carries:
            state = carry(state)
        json.dumps(state, allow_nan=False)
    except Exception as error:  # the functions are the user's
        fault = describe(error)
        return (
            f"the state of version {one.version} could not be carried over to version {handler.version}: {fault.type}: "
            f"{fault.message}; fix the migration"
        )
    return None


def _row(one: RecalledWorkflow) -> ClaimedJob:
    """The job as a worker would have claimed it."""
    return ClaimedJob(
        id=one.id,
        token="",
        task=one.workflow,
        args=one.args,
        queue=one.queue,
        priority=0,
        run_at=datetime.now(UTC).isoformat(),
        failures=0,
        crashes=0,
        claims=2,
        attempts=1,
        expired=None,
        paused=False,
        key=one.key,
        tags=None,
        version=one.version,
    )


class _Silent:
    """Refuses conversations: code that wants one, for a fence, is not inside of a step."""

    def converse(self, begin: Callable[[], Conversation[T]], *, atomic: bool = True) -> Never:  # noqa: ARG002  as Speaks
        raise _refused()

    async def aconverse(self, begin: Callable[[], Conversation[T]], *, atomic: bool = True) -> Never:  # noqa: ARG002  as Speaks
        raise _refused()


def _refused() -> RowlockError:
    return RowlockError("a check writes nothing; call current_job().fence() inside of a step, which it does not run")
