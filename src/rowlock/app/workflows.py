"""Workflows in operators' hands: list them, look at what one has done, and go on from one of its steps in a new job.

What else is done with them, cancel and retry before all, is done with `app.jobs`, as with any job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, get_args
from uuid import UUID

from rowlock.app.checks import check_actor, check_why
from rowlock.app.job import Job, not_found, refuse_in_loop
from rowlock.app.jobs import check_limit, enough_after
from rowlock.app.registry import Tasks
from rowlock.app.workflow_check import Check
from rowlock.db.results import ResultWaiters
from rowlock.errors import InvalidOption, NotAWorkflow
from rowlock.model.filter import check_id
from rowlock.model.ids import new_id
from rowlock.model.names import MAX_KEY, MAX_NAME, check_text, check_version, shown
from rowlock.model.payload.arguments import encode_untyped
from rowlock.model.record import JobRecord
from rowlock.model.spec import Handler, Keep
from rowlock.model.workflow.record import CheckedWorkflow, WorkflowCheck, WorkflowPage, WorkflowRecord, WorkflowStatus
from rowlock.model.workflow.timeline import Timeline, TimelineBranch, TimelineChild, TimelineSignal, TimelineStep
from rowlock.store.operations import cancel_one
from rowlock.store.query import Conversation
from rowlock.store.schema import make_partitions
from rowlock.store.workflows import records
from rowlock.store.workflows.records import Forked, Terminated, WorkflowFilter

__all__ = [
    "CheckedWorkflow",
    "Timeline",
    "TimelineBranch",
    "TimelineChild",
    "TimelineSignal",
    "TimelineStep",
    "WorkflowCheck",
    "WorkflowPage",
    "WorkflowRecord",
    "Workflows",
]

STATUSES: Final[tuple[WorkflowStatus, ...]] = get_args(WorkflowStatus)


class Workflows:
    """The workflows of an app: `app.workflows.show(job.id)`, `app.workflows.fork(job.id, from_step="charge")`."""

    def __init__(
        self, room: ResultWaiters, tasks: Tasks, handler_of: Callable[[str, int | None], Handler], keep: Keep
    ) -> None:
        self._database = room.database
        self._room = room
        self._tasks = tasks
        self._handler_of = handler_of
        self._keep = keep

    # Looking

    def list(
        self,
        *,
        workflow: str | None = None,
        version: int | None = None,
        status: WorkflowStatus | Iterable[WorkflowStatus] | None = None,
        queue: str | None = None,
        key: str | None = None,
        limit: int = 50,
        before: UUID | str | None = None,
        within: timedelta | None = None,
    ) -> WorkflowPage:
        """The newest workflows that match, live and ended; `before` is the `next` of the page before.

        With `within` it looks for about so long and answers what it has found; if there is a `next`, there may be more.
        """
        refuse_in_loop("app.workflows.list", "await app.workflows.alist(…)")
        wanted = _wanted(workflow, version, status, queue, key)
        return self._database.converse(_page(wanted, limit, before, within), atomic=False)

    async def alist(
        self,
        *,
        workflow: str | None = None,
        version: int | None = None,
        status: WorkflowStatus | Iterable[WorkflowStatus] | None = None,
        queue: str | None = None,
        key: str | None = None,
        limit: int = 50,
        before: UUID | str | None = None,
        within: timedelta | None = None,
    ) -> WorkflowPage:
        """The newest workflows that match, live and ended; `before` is the `next` of the page before.

        With `within` it looks for about so long and answers what it has found; if there is a `next`, there may be more.
        """
        wanted = _wanted(workflow, version, status, queue, key)
        return await self._database.aconverse(_page(wanted, limit, before, within), atomic=False)

    def show(self, job_id: UUID | str) -> Timeline:
        """What a workflow has done, step by step, and what it waits for; NotAWorkflow for a job of a plain task."""
        refuse_in_loop("app.workflows.show", "await app.workflows.ashow(…)")
        return self._database.converse(_show(job_id), atomic=False)

    async def ashow(self, job_id: UUID | str) -> Timeline:
        """What a workflow has done, step by step, and what it waits for; NotAWorkflow for a job of a plain task."""
        return await self._database.aconverse(_show(job_id), atomic=False)

    def check(self, *, workflow: str | None = None, ended: bool = False, limit: int = 1000) -> WorkflowCheck:
        """Replay what the newest live workflows remember against this process's code, and say where the two differ.

        It writes nothing and calls no step; what code does outside of steps, it does. With `ended`, also those that
        history keeps: what they did, the code must do still.
        """
        refuse_in_loop("app.workflows.check", "await app.workflows.acheck(…)")
        return self._check(workflow, ended=ended, limit=limit).run()

    async def acheck(self, *, workflow: str | None = None, ended: bool = False, limit: int = 1000) -> WorkflowCheck:
        """Replay what the newest live workflows remember against this process's code, and say where the two differ.

        It writes nothing and calls no step; what code does outside of steps, it does. With `ended`, also those that
        history keeps: what they did, the code must do still.
        """
        return await self._check(workflow, ended=ended, limit=limit).arun()

    def _check(self, workflow: str | None, *, ended: bool, limit: int) -> Check:
        if workflow is not None:
            check_text("workflow", workflow, limit=MAX_NAME)
        if type(limit) is not int or limit < 1:
            raise InvalidOption(f"limit={shown(limit)} must be a whole number of 1 or more")
        return Check(self._database, self._tasks.handlers(), workflow=workflow, ended=ended, limit=limit)

    # Doing

    def fork(
        self,
        job_id: UUID | str,
        *,
        from_step: str,
        args: Mapping[str, object] | None = None,
        version: int | None = None,
        by: str | None = None,
        why: str | None = None,
    ) -> Job[Any]:
        """Go on from a step of a workflow, live or ended, in a new job, which remembers what was done before that step.

        The step is run anew, and all that the code calls after it. `args` are other arguments, by name; those that are
        not named stay as they were. `version` is that of other code. The workflow itself is left as it is, with its key
        and its signals; but if the new job fails, it undoes what it remembers, whoever did it. Of one that was undone
        nothing stands any more: its fork begins anew. An event is written for both.
        """
        refuse_in_loop("app.workflows.fork", "await app.workflows.afork(…)")
        fork_id = new_id()
        forking = self._forking(job_id, fork_id, from_step=from_step, args=args, version=version, by=by, why=why)
        self._database.converse(lambda: make_partitions(longest=self._keep.longest))
        return self._handle(fork_id, self._database.converse(forking))

    async def afork(
        self,
        job_id: UUID | str,
        *,
        from_step: str,
        args: Mapping[str, object] | None = None,
        version: int | None = None,
        by: str | None = None,
        why: str | None = None,
    ) -> Job[Any]:
        """Go on from a step of a workflow, live or ended, in a new job, which remembers what was done before that step.

        The step is run anew, and all that the code calls after it. `args` are other arguments, by name; those that are
        not named stay as they were. `version` is that of other code. The workflow itself is left as it is, with its key
        and its signals; but if the new job fails, it undoes what it remembers, whoever did it. Of one that was undone
        nothing stands any more: its fork begins anew. An event is written for both.
        """
        fork_id = new_id()
        forking = self._forking(job_id, fork_id, from_step=from_step, args=args, version=version, by=by, why=why)
        await self._database.aconverse(lambda: make_partitions(longest=self._keep.longest))
        return self._handle(fork_id, await self._database.aconverse(forking))

    def terminate(self, job_id: UUID | str, *, by: str | None = None, why: str | None = None) -> bool:
        """End a workflow as cancelled at once, without undo; for one that no worker can undo, as its code is gone.

        True when it has ended so; False when it had ended before. What it has done stands: put right by hand what must
        not. Its key is free, its children are cancelled, and a worker that runs it can record nothing more. An event
        says who did it and why. Where a worker has the code, `job.cancel()` undoes first.
        """
        refuse_in_loop("app.workflows.terminate", "await app.workflows.aterminate(…)")
        known, terminating, cancelling = self._terminating(job_id, by, why)
        self._database.converse(lambda: make_partitions(longest=self._keep.longest))
        ended = self._database.converse(terminating)
        for child in ended.children:
            self._database.converse(cancelling(child))
        return _has_terminated(known, ended)

    async def aterminate(self, job_id: UUID | str, *, by: str | None = None, why: str | None = None) -> bool:
        """End a workflow as cancelled at once, without undo; for one that no worker can undo, as its code is gone.

        True when it has ended so; False when it had ended before. What it has done stands: put right by hand what must
        not. Its key is free, its children are cancelled, and a worker that runs it can record nothing more. An event
        says who did it and why. Where a worker has the code, `job.cancel()` undoes first.
        """
        known, terminating, cancelling = self._terminating(job_id, by, why)
        await self._database.aconverse(lambda: make_partitions(longest=self._keep.longest))
        ended = await self._database.aconverse(terminating)
        for child in ended.children:
            await self._database.aconverse(cancelling(child))
        return _has_terminated(known, ended)

    # Between the lines

    def _forking(
        self,
        job_id: UUID | str,
        fork_id: str,
        *,
        from_step: str,
        args: Mapping[str, object] | None,
        version: int | None,
        by: str | None,
        why: str | None,
    ) -> Callable[[], Conversation[Forked]]:
        known, step = check_id(job_id), check_text("from_step", from_step, limit=MAX_KEY)
        actor, reason = check_actor(by), check_why(why)
        wanted = None if version is None else check_version(version)
        if args is not None and not isinstance(args, Mapping):
            raise InvalidOption(f"args={shown(args)} must be a mapping of arguments by name; write args={{'x': 1}}")

        def forking() -> Conversation[Forked]:
            timeline = yield from records.show(known, "app.workflows.fork")
            if timeline is None:
                raise not_found(known)
            records.check_step(known, timeline, step)
            forked: list[Forked] = yield records.fork(
                known,
                new_id=fork_id,
                step=step,
                args=None if args is None else self._encoded(timeline.job, args, wanted),
                version=wanted,
                actor=actor,
                why=reason,
            )
            if not forked:  # somebody has deleted it in between
                raise not_found(known)
            return forked[0]

        return forking

    def _terminating(
        self, job_id: UUID | str, by: str | None, why: str | None
    ) -> tuple[UUID, Callable[[], Conversation[Terminated]], Callable[[str], Callable[[], Conversation[object]]]]:
        """Its id, what ends it, and what cancels a child of it that was locked meanwhile."""
        known, actor, reason, keep = check_id(job_id), check_actor(by), check_why(why), self._keep.cancelled
        return (
            known,
            lambda: records.terminating(known, actor=actor, why=reason, keep=keep),
            lambda child: lambda: cancel_one(child, actor=actor, why=reason, keep=keep),
        )

    def _encoded(self, job: JobRecord, args: Mapping[str, object], version: int | None) -> str:
        """The arguments of a workflow with others in their place, checked where this process knows its code."""
        if not isinstance(job.args, dict):
            raise InvalidOption(
                f"the arguments of workflow {job.id} cannot be read here, so none of them can be replaced"
            )
        declared = self._tasks.get(job.task, version or job.version)
        whole = job.args | dict(args)
        return encode_untyped(whole) if declared is None else declared.arguments.encode_json(whole)

    def _handle(self, fork_id: str, forked: Forked) -> Job[Any]:
        handler = self._handler_of(forked.task, forked.version)
        return Job(fork_id, task=forked.task, queue=forked.queue, room=self._room, handler=handler, keep=self._keep)


def _has_terminated(job_id: UUID, ended: Terminated) -> bool:
    if ended.answer == "unknown":
        raise not_found(job_id)
    if ended.answer == "no workflow":
        raise NotAWorkflow(
            job_id, f"job {job_id} is of a plain task: app.workflows.terminate is for workflows; job.cancel() ends it"
        )
    return ended.answer == "terminated"


def _wanted(
    workflow: str | None,
    version: int | None,
    status: WorkflowStatus | Iterable[WorkflowStatus] | None,
    queue: str | None,
    key: str | None,
) -> WorkflowFilter:
    for name, text, limit in (("workflow", workflow, MAX_NAME), ("queue", queue, MAX_NAME), ("key", key, MAX_KEY)):
        if text is not None:
            check_text(name, text, limit=limit)
    return WorkflowFilter(
        workflow=workflow,
        version=None if version is None else check_version(version),
        statuses=None if status is None else _statuses(status),
        queue=queue,
        key=key,
    )


def _statuses(status: WorkflowStatus | Iterable[WorkflowStatus]) -> tuple[WorkflowStatus, ...]:
    if not isinstance(status, Iterable):
        raise InvalidOption(f"status={shown(status)} must be a str or several; use {', '.join(STATUSES)}")
    named = (status,) if isinstance(status, str) else tuple(status)
    if unknown := [one for one in named if one not in STATUSES]:
        raise InvalidOption(f"status {shown(unknown[0])} is none of {', '.join(STATUSES)}")
    return named


def _page(
    wanted: WorkflowFilter, limit: int, before: UUID | str | None, within: timedelta | None
) -> Callable[[], Conversation[WorkflowPage]]:
    most, start = check_limit(limit), None if before is None else check_id(before)
    return lambda: records.page(wanted, limit=most, before=start, enough=enough_after(within))


def _show(job_id: UUID | str) -> Callable[[], Conversation[Timeline]]:
    known = check_id(job_id)

    def showing() -> Conversation[Timeline]:
        timeline = yield from records.show(known, "app.workflows.show")
        if timeline is None:
            raise not_found(known)
        return timeline

    return showing
