"""What operators do to jobs: look at them, retry, cancel, delete, move and hurry them.

Verbs go through the jobs newest first, a window at a time, each window a transaction of its own: locks are short, and
what is stopped in the middle goes on from where it stood.
"""
# ruff: noqa: A002  a filter is called filter

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar
from uuid import UUID

from rowlock.actor import check_actor, check_why
from rowlock.amend import Amending
from rowlock.errors import InvalidOption
from rowlock.jobs import refuse_in_loop
from rowlock.model.answer import Done, Event, Page, Preview
from rowlock.model.filter import Filter, check_id
from rowlock.model.names import check_priority, check_queue, shown
from rowlock.model.pause import Pause
from rowlock.model.spec import Keep
from rowlock.model.verb import VERBS, VerbName, verb_named
from rowlock.store import outline, scan, stats, verbs
from rowlock.store.query import Conversation
from rowlock.store.schema import make_partitions
from rowlock.store.verbs import Act, Work

__all__ = ["Done", "Event", "Jobs", "Page", "Pause", "Preview", "VerbName"]

_MOST_LISTED: Final = 1_000
_EVERY: Final = Filter()

T = TypeVar("T")

Track = Callable[[Done], object]
Begin = Callable[[bool], Conversation[T]]


class Jobs(Amending):
    """The jobs of an app, for operators: `app.jobs.retry(Filter(state="failed", task="send"), why="host is back")`.

    For every job that a verb changes it writes an event: what was done, by whom (the user of this process, unless `by`
    says otherwise) and `why`. `track` is told after every window how far the verb has come.
    """

    # Looking

    def list(
        self,
        filter: Filter = _EVERY,
        *,
        limit: int = 50,
        before: UUID | str | None = None,
        within: timedelta | None = None,
    ) -> Page:
        """The newest jobs that match, live and ended; `before` is the `next` of the page before.

        With `within` it looks for about so long and answers what it has found; if there is a `next`, there may be more.
        """
        refuse_in_loop("app.jobs.list", "await app.jobs.alist(…)")
        return self._database.join(_page(filter, limit, before, within), atomic=False)

    async def alist(
        self,
        filter: Filter = _EVERY,
        *,
        limit: int = 50,
        before: UUID | str | None = None,
        within: timedelta | None = None,
    ) -> Page:
        """The newest jobs that match, live and ended; `before` is the `next` of the page before.

        With `within` it looks for about so long and answers what it has found; if there is a `next`, there may be more.
        """
        return await self._database.ajoin(_page(filter, limit, before, within), atomic=False)

    def preview(self, verb: VerbName, filter: Filter, *, within: timedelta | None = None) -> Preview:
        """What a verb would do now, without doing it; with `within`, as far as about so long shows."""
        refuse_in_loop("app.jobs.preview", "await app.jobs.apreview(…)")
        return self._database.join(_preview(filter, verb, within), atomic=False)

    async def apreview(self, verb: VerbName, filter: Filter, *, within: timedelta | None = None) -> Preview:
        """What a verb would do now, without doing it; with `within`, as far as about so long shows."""
        return await self._database.ajoin(_preview(filter, verb, within), atomic=False)

    def events(
        self, job_id: UUID | str | None = None, *, limit: int = 100, before: Event | None = None
    ) -> tuple[Event, ...]:
        """What was done, newest first: to one job, or at all; `before` is the last event of the answer before."""
        refuse_in_loop("app.jobs.events", "await app.jobs.aevents(…)")
        return self._database.join(partial(_events, _checked(job_id), check_limit(limit), before), atomic=False)

    async def aevents(
        self, job_id: UUID | str | None = None, *, limit: int = 100, before: Event | None = None
    ) -> tuple[Event, ...]:
        """What was done, newest first: to one job, or at all; `before` is the last event of the answer before."""
        return await self._database.ajoin(partial(_events, _checked(job_id), check_limit(limit), before), atomic=False)

    # Doing

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
        work = _work("retry", filter, by, why, on_ended=verbs.retry)
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
        work = _work("retry", filter, by, why, on_ended=verbs.retry)
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
        work = _work("delete", filter, by, why, on_live=verbs.delete, on_ended=verbs.delete_ended)
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
        work = _work("delete", filter, by, why, on_live=verbs.delete, on_ended=verbs.delete_ended)
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
        work = _work("move", filter, by, why, on_live=partial(verbs.move, queue=check_queue(queue)))
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
        work = _work("move", filter, by, why, on_live=partial(verbs.move, queue=check_queue(queue)))
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
            "reprioritise", filter, by, why, on_live=partial(verbs.reprioritise, priority=check_priority(priority))
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
            "reprioritise", filter, by, why, on_live=partial(verbs.reprioritise, priority=check_priority(priority))
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
        work = _work("run_next", filter, by, why, on_live=verbs.run_next)
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
        work = _work("run_next", filter, by, why, on_live=verbs.run_next)
        return await self._ado(work, before, track)

    def _cancel(self, filter: Filter) -> Act:
        return partial(verbs.cancel, states=VERBS["cancel"].states(filter), keep=self._keep.cancelled)

    def _do(self, work: Work, before: UUID | str | None, track: Track | None) -> Done:
        refuse_in_loop(f"app.jobs.{work.verb.name}", f"await app.jobs.a{work.verb.name}(…)")
        done = Done(work.verb.name, before=_checked(before))
        self._database.join(partial(_prepare, self._keep))
        while True:
            done = self._database.join(partial(work.window, done))
            if track is not None:
                track(done)
            if done.before is None:
                return done

    async def _ado(self, work: Work, before: UUID | str | None, track: Track | None) -> Done:
        done = Done(work.verb.name, before=_checked(before))
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
) -> Work:
    verb = VERBS[name]
    verb.states(filter)  # refuses what it cannot change
    return Work(verb, filter, check_actor(by), check_why(why), on_live, on_ended)


def _prepare(keep: Keep, _resend: bool) -> Conversation[None]:  # noqa: FBT001  as converse calls it
    """Make the partitions that history and events lack, where no worker has run for a month."""
    return make_partitions(longest=keep.longest)


def _page(filter: Filter, limit: int, before: UUID | str | None, within: timedelta | None) -> Begin[Page]:
    most, start = check_limit(limit), _checked(before)
    return lambda _resend: outline.page(filter, limit=most, before=start, enough=enough_after(within))


def _preview(filter: Filter, name: VerbName, within: timedelta | None) -> Begin[Preview]:
    verb = verb_named(name)
    return lambda _resend: scan.preview(filter, verb, enough=enough_after(within))


def enough_after(within: timedelta | None) -> scan.Enough:
    """Says, from so long after now on, that it is enough."""
    if within is None:
        return scan.never
    end = time.monotonic() + within.total_seconds()
    return lambda: time.monotonic() >= end


def _events(
    job: UUID | None,
    limit: int,
    before: Event | None,
    _resend: bool,  # noqa: FBT001  as converse calls it
) -> Conversation[tuple[Event, ...]]:
    return tuple((yield stats.events(job=None if job is None else str(job), limit=limit, before=before)))


def _checked(job_id: UUID | str | None) -> UUID | None:
    return None if job_id is None else check_id(job_id)


def check_limit(limit: int) -> int:
    """How many to answer at once."""
    if type(limit) is not int or not 1 <= limit <= _MOST_LISTED:
        raise InvalidOption(f"limit={shown(limit)} is out of range; use 1 to {_MOST_LISTED:,}, and before= for more")
    return limit
