"""Workflows for operators: list them, show what one has done, fork, check and terminate them.

The rest, cancel and retry before all, is done with `app.jobs`, as with any job.
"""

# ruff: noqa: A002  a filter is called filter

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from rowlock.app.checks import check_actor, check_limit, check_optional_id, check_optional_name, check_why, enough_after
from rowlock.app.job import Job, not_found
from rowlock.app.resources import Resources
from rowlock.app.verbs import Exchange, Verb, averb, refuse_in_loop, verb
from rowlock.app.workflow_check import Check
from rowlock.errors import InvalidOption, NotAWorkflow
from rowlock.model.filter import STATES, Filter, check_id
from rowlock.model.ids import new_id
from rowlock.model.names import MAX_KEY, check_text, check_version, shown
from rowlock.model.record import JobRecord
from rowlock.model.workflow.record import CheckedWorkflow, WorkflowCheck, WorkflowPage, WorkflowRecord
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

_EVERY: Final = Filter()
_COMPARED: Final = ("state", "task", "queue", "key")


class Workflows:
    """The workflows of an app: `app.workflows.show(job.id)`, `app.workflows.fork(job.id, from_step="charge")`."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._database = resources.database
        self._keep = resources.keep

    # Reading

    @verb("app.workflows")
    def list(
        self,
        filter: Filter = _EVERY,
        *,
        version: int | None = None,
        limit: int = 50,
        before: UUID | str | None = None,
        time_limit: timedelta | None = None,
    ) -> Verb[WorkflowPage]:
        """The newest workflows that match, live and ended; `before` is the `next` of the page before.

        The filter is by `state`, `task` (its name), `queue` and `key`; `app.jobs.list` takes all of a filter, and lists
        workflows too. With `time_limit` it looks for about so long and returns what it has found; if there is a
        `next`, there may be more.
        """
        wanted = _workflow_filter(filter, version)
        most, start = check_limit(limit), check_optional_id(before)
        return (
            yield from Exchange(
                self._database,
                lambda: records.page(wanted, limit=most, before=start, enough=enough_after(time_limit)),
                atomic=False,
            )
        )

    alist = averb(list)  # noqa: A003  the verb above

    @verb("app.workflows")
    def show(self, job_id: UUID | str) -> Verb[Timeline]:
        """The timeline of a workflow: its steps, and what it waits for; NotAWorkflow for a job of a plain task."""
        known = check_id(job_id)
        timeline = yield from Exchange(self._database, partial(records.show, known, "app.workflows.show"), atomic=False)
        if timeline is None:
            raise not_found(known)
        return timeline

    ashow = averb(show)

    # Replaying needs a loop: the caller's, or one of its own.

    def check(self, *, workflow: str | None = None, ended: bool = False, limit: int = 1000) -> WorkflowCheck:
        """Replay the records of the newest live workflows against this process's code, and report where they differ.

        It writes nothing and calls no step, but code outside of steps runs. With `ended`, also workflows in
        history: the code must still do what they did.
        """
        refuse_in_loop("app.workflows.check", "await app.workflows.acheck(…)")
        return self._check(workflow, ended=ended, limit=limit).run()

    async def acheck(self, *, workflow: str | None = None, ended: bool = False, limit: int = 1000) -> WorkflowCheck:
        """Replay the records of the newest live workflows against this process's code, and report where they differ.

        It writes nothing and calls no step, but code outside of steps runs. With `ended`, also workflows in
        history: the code must still do what they did.
        """
        return await self._check(workflow, ended=ended, limit=limit).arun()

    def _check(self, workflow: str | None, *, ended: bool, limit: int) -> Check:
        if type(limit) is not int or limit < 1:
            raise InvalidOption(f"limit={shown(limit)} must be a whole number of 1 or more")
        handlers = self._resources.tasks.handlers()
        named = check_optional_name("workflow", workflow)
        return Check(self._database, handlers, workflow=named, ended=ended, limit=limit)

    # Changing

    @verb("app.workflows")
    def fork(
        self,
        job_id: UUID | str,
        *,
        from_step: str,
        args: Mapping[str, object] | None = None,
        version: int | None = None,
        by: str | None = None,
        why: str | None = None,
    ) -> Verb[Job[Any]]:
        """Go on from a step of a workflow, live or ended, in a new job, which remembers what was done before that step.

        The step is run again, and so is all that the code calls after it. `args` are other arguments, by name; the
        rest stay as they were. `version` is that of other code. The workflow itself is left as it is, with its key
        and its signals; but if the new job fails, it undoes what it remembers, whoever did it. One that was undone
        has nothing left to go on from: its fork starts over. An event is written for both.
        """
        known, fork_id = check_id(job_id), new_id()
        step, other = check_text("from_step", from_step, limit=MAX_KEY), _check_version(version)
        actor, reason = check_actor(by), check_why(why)
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
                args=None if args is None else self._replaced(timeline.job, args, other),
                version=other,
                actor=actor,
                why=reason,
            )
            if not forked:  # somebody has deleted it in between
                raise not_found(known)
            return forked[0]

        yield from Exchange(self._database, partial(make_partitions, longest=self._keep.longest))
        forked = yield from Exchange(self._database, forking)
        return self._resources.job(fork_id, task=forked.task, version=forked.version, queue=forked.queue)

    afork = averb(fork)

    def _replaced(self, job: JobRecord, args: Mapping[str, object], version: int | None) -> str:
        """The arguments of a workflow with others in their place, checked where this process knows its code."""
        if not isinstance(job.args, dict):
            raise InvalidOption(
                f"the arguments of workflow {job.id} cannot be read here, so none of them can be replaced"
            )
        return self._resources.encode(job.task, version or job.version, job.args | dict(args))

    @verb("app.workflows")
    def terminate(self, job_id: UUID | str, *, by: str | None = None, why: str | None = None) -> Verb[bool]:
        """End a workflow as cancelled at once, without undo; for one that no worker can undo, as its code is gone.

        True when this has ended it; False when it had ended before. What it did stays done: put right by hand what
        must not. Its key is free, its children are cancelled, and a worker that runs it can record nothing more.
        An event says who did it and why. Where a worker has the code, `job.cancel()` undoes first.
        """
        known, actor, reason, keep = check_id(job_id), check_actor(by), check_why(why), self._keep.cancelled
        yield from Exchange(self._database, partial(make_partitions, longest=self._keep.longest))
        ended = yield from Exchange(
            self._database, partial(records.terminating, known, actor=actor, why=reason, keep=keep)
        )
        for child in ended.children:  # that were locked meanwhile
            yield from Exchange(self._database, partial(cancel_one, child, actor=actor, why=reason, keep=keep))
        return _has_terminated(known, ended)

    aterminate = averb(terminate)


def _has_terminated(job_id: UUID, ended: Terminated) -> bool:
    if ended.answer == "unknown":
        raise not_found(job_id)
    if ended.answer == "no workflow":
        raise NotAWorkflow(
            job_id, f"job {job_id} is of a plain task: app.workflows.terminate is for workflows; job.cancel() ends it"
        )
    return ended.answer == "terminated"


def _workflow_filter(filter: Filter, version: int | None) -> WorkflowFilter:
    if others := sorted(filter.to_dict().keys() - _COMPARED):
        raise InvalidOption(
            f"app.workflows.list filters by {', '.join(_COMPARED)}, not by {', '.join(others)}; app.jobs.list does, "
            "and lists workflows too"
        )
    return WorkflowFilter(
        workflow=filter.task,
        version=_check_version(version),
        states=None if filter.states is None else tuple(one for one in STATES if one in filter.states),
        queue=filter.queue,
        key=filter.key,
    )


def _check_version(version: int | None) -> int | None:
    return None if version is None else check_version(version)
