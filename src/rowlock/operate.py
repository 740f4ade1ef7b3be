"""What operators do to jobs: retry, cancel, delete, move and hurry them.

Verbs go through the jobs newest first, a window at a time, each window a transaction of its own: locks are short, and
what is stopped in the middle goes on from where it stood.
"""
# ruff: noqa: A002  a filter is called filter

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import UUID

from rowlock.actor import check_actor, check_why
from rowlock.amend import Amending
from rowlock.jobs import refuse_in_loop
from rowlock.look import Looking, checked_id
from rowlock.model.failure_groups import FailureGroup, Failures
from rowlock.model.filter import Filter
from rowlock.model.names import check_priority, check_queue
from rowlock.model.pause import Pause
from rowlock.model.results import Cursor, Done, Event, Page, Preview
from rowlock.model.spec import Keep
from rowlock.model.verb import VERBS, VerbName
from rowlock.store import operations
from rowlock.store.operations import Act, BulkOperation
from rowlock.store.query import Conversation
from rowlock.store.schema import make_partitions

__all__ = ["Cursor", "Done", "Event", "FailureGroup", "Failures", "Jobs", "Page", "Pause", "Preview", "VerbName"]

Track = Callable[[Done], object]


class Jobs(Looking, Amending):
    """The jobs of an app, for operators: `app.jobs.retry(Filter(state="failed", task="send"), why="host is back")`.

    For every job that a verb changes it writes an event: what was done, by whom (the user of this process, unless `by`
    says otherwise) and `why`. `track` is told after every window how far the verb has come.
    """

    def retry(
        self,
        filter: Filter,
        *,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Done:
        """Run ended jobs again, each under its old id and with all its attempts before it.

        These are failed jobs; cancelled, succeeded and skipped ones only if the filter's `state` names them, and are
        passed over otherwise, as is a job whose key is held by another one now. A job that was cancelled before its
        time keeps its `run_at`. A workflow goes on from the step that has failed; if something was
        undone, or it had succeeded, it starts from the beginning.
        """
        work = _work("retry", filter, by, why, on_ended=operations.retry)
        return self._do(work, before, track)

    async def aretry(
        self,
        filter: Filter,
        *,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Done:
        """Run ended jobs again, each under its old id and with all its attempts before it.

        These are failed jobs; cancelled, succeeded and skipped ones only if the filter's `state` names them, and are
        passed over otherwise, as is a job whose key is held by another one now. A job that was cancelled before its
        time keeps its `run_at`. A workflow goes on from the step that has failed; if something was
        undone, or it had succeeded, it starts from the beginning.
        """
        work = _work("retry", filter, by, why, on_ended=operations.retry)
        return await self._ado(work, before, track)

    def cancel(
        self,
        filter: Filter,
        *,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Done:
        """Cancel jobs that have not ended: ready and waiting ones end at once, running ones when their attempts do.

        None of them succeeds or runs again. Running handlers are told; those that are coroutines are cancelled.
        Workflows that have begun, and children, end when a worker has undone what they did.
        """
        work = _work("cancel", filter, by, why, on_live=self._cancel(filter))
        return self._do(work, before, track)

    async def acancel(
        self,
        filter: Filter,
        *,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Done:
        """Cancel jobs that have not ended: ready and waiting ones end at once, running ones when their attempts do.

        None of them succeeds or runs again. Running handlers are told; those that are coroutines are cancelled.
        Workflows that have begun, and children, end when a worker has undone what they did.
        """
        work = _work("cancel", filter, by, why, on_live=self._cancel(filter))
        return await self._ado(work, before, track)

    def delete(
        self,
        filter: Filter,
        *,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Done:
        """Remove jobs, live or ended, and leave only the events; running ones are passed over.

        So are workflows that have begun, and children: cancel them first.
        """
        work = _work("delete", filter, by, why, on_live=operations.delete, on_ended=operations.delete_ended)
        return self._do(work, before, track)

    async def adelete(
        self,
        filter: Filter,
        *,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Done:
        """Remove jobs, live or ended, and leave only the events; running ones are passed over.

        So are workflows that have begun, and children: cancel them first.
        """
        work = _work("delete", filter, by, why, on_live=operations.delete, on_ended=operations.delete_ended)
        return await self._ado(work, before, track)

    def move(
        self,
        filter: Filter,
        *,
        queue: str,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Done:
        """Put ready and waiting jobs on another queue, where their run_at gives them their place."""
        work = _work("move", filter, by, why, on_live=partial(operations.move, queue=check_queue(queue)))
        return self._do(work, before, track)

    async def amove(
        self,
        filter: Filter,
        *,
        queue: str,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Done:
        """Put ready and waiting jobs on another queue, where their run_at gives them their place."""
        work = _work("move", filter, by, why, on_live=partial(operations.move, queue=check_queue(queue)))
        return await self._ado(work, before, track)

    def reprioritise(
        self,
        filter: Filter,
        *,
        priority: int,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Done:
        """Give ready and waiting jobs another priority."""
        work = _work(
            "reprioritise", filter, by, why, on_live=partial(operations.reprioritise, priority=check_priority(priority))
        )
        return self._do(work, before, track)

    async def areprioritise(
        self,
        filter: Filter,
        *,
        priority: int,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Done:
        """Give ready and waiting jobs another priority."""
        work = _work(
            "reprioritise", filter, by, why, on_live=partial(operations.reprioritise, priority=check_priority(priority))
        )
        return await self._ado(work, before, track)

    def run_next(
        self,
        filter: Filter,
        *,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Done:
        """Let ready jobs, delayed ones too, run before all others of their queues: due now, and of priority 4.

        A workflow that sleeps goes on sleeping: it is passed over.
        """
        work = _work("run_next", filter, by, why, on_live=operations.run_next)
        return self._do(work, before, track)

    async def arun_next(
        self,
        filter: Filter,
        *,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Done:
        """Let ready jobs, delayed ones too, run before all others of their queues: due now, and of priority 4.

        A workflow that sleeps goes on sleeping: it is passed over.
        """
        work = _work("run_next", filter, by, why, on_live=operations.run_next)
        return await self._ado(work, before, track)

    def _cancel(self, filter: Filter) -> Act:
        return partial(operations.cancel, states=VERBS["cancel"].states(filter), keep=self._keep.cancelled)

    def _do(self, work: BulkOperation, before: UUID | str | None, track: Track | None) -> Done:
        refuse_in_loop(f"app.jobs.{work.verb.name}", f"await app.jobs.a{work.verb.name}(…)")
        done = Done(work.verb.name, before=checked_id(before))
        self._database.join(partial(_prepare, self._keep))
        while True:
            done = self._database.join(partial(work.window, done))
            if track is not None:
                track(done)
            if done.before is None:
                return done

    async def _ado(self, work: BulkOperation, before: UUID | str | None, track: Track | None) -> Done:
        done = Done(work.verb.name, before=checked_id(before))
        await self._database.ajoin(partial(_prepare, self._keep))
        while True:
            done = await self._database.ajoin(partial(work.window, done))
            if track is not None:
                track(done)
            if done.before is None:
                return done


def _work(
    name: VerbName,
    filter: Filter,
    by: str | None,
    why: str | None,
    *,
    on_live: Act | None = None,
    on_ended: Act | None = None,
) -> BulkOperation:
    verb = VERBS[name]
    verb.states(filter)  # refuses what it cannot change
    return BulkOperation(verb, filter, check_actor(by), check_why(why), on_live, on_ended)


def _prepare(keep: Keep, _resend: bool) -> Conversation[None]:  # noqa: FBT001  as converse calls it
    """Make the partitions that history and events lack, where no worker has run for a month."""
    return make_partitions(longest=keep.longest)
