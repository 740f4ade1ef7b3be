"""What operators do to jobs: retry, cancel, delete, move and hurry them.

Verbs go through the jobs newest first, a window at a time, each window a transaction of its own: locks are short, and
what is stopped in the middle goes on from where it stood.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar
from uuid import UUID

from rowlock.app.checks import check_actor, check_why
from rowlock.app.enqueue import Enqueuer, Logged
from rowlock.app.job import Job, refuse_in_loop, show
from rowlock.app.tasks import Call
from rowlock.db.database import Database
from rowlock.errors import InvalidArguments, InvalidOption, RowlockError
from rowlock.model.failure_groups import FailureGroup, Failures
from rowlock.model.filter import Filter, check_id
from rowlock.model.names import check_priority, check_queue, shown
from rowlock.model.pause import Pause
from rowlock.model.record import JobRecord
from rowlock.model.results import Cursor, Done, Event, Page, Preview, Start, start_of
from rowlock.model.spec import Keep
from rowlock.model.verb import VERBS, VerbName, verb_named
from rowlock.store import events as events_store
from rowlock.store import operations
from rowlock.store.find import pages, windows
from rowlock.store.find.pages import failure_groups
from rowlock.store.operations import Act, BulkOperation
from rowlock.store.query import Conversation
from rowlock.store.schema import make_partitions

R = TypeVar("R")

Encode = Callable[[str, int | None, Mapping[str, object]], str]
"""The JSON of arguments for a task, and the version of a workflow, checked where this process knows it."""


class Amending:
    """The part of `app.jobs` that is about one job."""

    def __init__(self, database: Database, keep: Keep, *, encode: Encode, enqueuer: Enqueuer) -> None:
        self._database = database
        self._keep = keep
        self._encode = encode
        self._enqueuer = enqueuer

    def edit(
        self, job_id: UUID | str, *, args: Mapping[str, object], by: str | None = None, why: str | None = None
    ) -> tuple[str, ...]:
        """Give a job that has not started, or waits for its next attempt, other arguments; answers the names of those.

        They must fit the task, if this process knows it. A job that runs or has ended is left alone, and so are
        workflows that have begun and children: then it raises RowlockError, and JobNotFound if there is no such job.
        """
        refuse_in_loop("app.jobs.edit", "await app.jobs.aedit(…)")
        editing = self._editing(job_id, args, by, why)
        self._database.converse(lambda: make_partitions(longest=self._keep.longest))
        return self._database.converse(editing)

    async def aedit(
        self, job_id: UUID | str, *, args: Mapping[str, object], by: str | None = None, why: str | None = None
    ) -> tuple[str, ...]:
        """Give a job that has not started, or waits for its next attempt, other arguments; answers the names of those.

        They must fit the task, if this process knows it. A job that runs or has ended is left alone, and so are
        workflows that have begun and children: then it raises RowlockError, and JobNotFound if there is no such job.
        """
        editing = self._editing(job_id, args, by, why)
        await self._database.aconverse(lambda: make_partitions(longest=self._keep.longest))
        return await self._database.aconverse(editing)

    def enqueue(
        self, call: Call[R], *, like: UUID | str | None = None, by: str | None = None, why: str | None = None
    ) -> Job[R]:
        """Enqueue a call by hand: an event says who did it and why, and after which job it was made, if `like` one."""
        logged = self._logged(like, by, why)
        refuse_in_loop("app.jobs.enqueue", "await app.jobs.aenqueue(…)")
        self._database.converse(lambda: make_partitions(longest=self._keep.longest))
        return self._enqueuer.logged(call, logged)

    async def aenqueue(
        self, call: Call[R], *, like: UUID | str | None = None, by: str | None = None, why: str | None = None
    ) -> Job[R]:
        """Enqueue a call by hand: an event says who did it and why, and after which job it was made, if `like` one."""
        logged = self._logged(like, by, why)
        await self._database.aconverse(lambda: make_partitions(longest=self._keep.longest))
        return await self._enqueuer.alogged(call, logged)

    def _logged(self, like: UUID | str | None, by: str | None, why: str | None) -> Logged:
        return Logged(check_actor(by), check_why(why), None if like is None else check_id(like))

    def _editing(
        self, job_id: UUID | str, args: Mapping[str, object], by: str | None, why: str | None
    ) -> Callable[[], Conversation[tuple[str, ...]]]:
        known, actor, reason = check_id(job_id), check_actor(by), check_why(why)
        if not isinstance(args, Mapping):
            raise InvalidArguments(f"args={shown(args)} must be a mapping of arguments by name; write args={{'x': 1}}")

        def begin() -> Conversation[tuple[str, ...]]:
            while True:  # what changes between the two statements is seen at the next look
                record = yield from show(known)
                if (fault := _fault(record)) is not None:
                    raise RowlockError(f"job {known} {fault}")
                text = self._encode(record.task, record.version, args)
                edited: list[Any] = yield operations.edit(str(known), args=text, actor=actor, why=reason)
                if edited:
                    return tuple(edited[0])

        return begin


def _fault(record: JobRecord) -> str | None:
    """Why a job's arguments cannot be changed, and what to do instead."""
    if record.ended:
        return f"has {record.state}, and what it was given stays as it was; enqueue another one like it"
    if record.begun:
        return "is a workflow that has begun, or the child of one, and what it was given is remembered; cancel it first"
    if record.state == "running":
        return "is running with the arguments it has; cancel it and enqueue another one, or wait for its next attempt"
    return None


_MOST_LISTED: Final = 1_000
_MOST_COUNTED: Final = 100_000
_EVERY: Final = Filter()

T = TypeVar("T")

Begin = Callable[[], Conversation[T]]


class Looking:
    """The part of `app.jobs` that changes nothing."""

    _database: Database

    def list(
        self,
        filter: Filter = _EVERY,
        *,
        limit: int = 50,
        before: UUID | Cursor | str | None = None,
        within: timedelta | None = None,
    ) -> Page:
        """The newest jobs that match, live and ended; `before` is the `next` of the page before.

        Only ended ones are listed by when they ended, latest first: with an ended state, or `ended_after`.
        With `within` it looks for about so long and answers what it has found; if there is a `next`, there may be more.
        """
        refuse_in_loop("app.jobs.list", "await app.jobs.alist(…)")
        return self._database.join(_page(filter, limit, before, within), atomic=False)

    async def alist(
        self,
        filter: Filter = _EVERY,
        *,
        limit: int = 50,
        before: UUID | Cursor | str | None = None,
        within: timedelta | None = None,
    ) -> Page:
        """The newest jobs that match, live and ended; `before` is the `next` of the page before.

        Only ended ones are listed by when they ended, latest first: with an ended state, or `ended_after`.
        With `within` it looks for about so long and answers what it has found; if there is a `next`, there may be more.
        """
        return await self._database.ajoin(_page(filter, limit, before, within), atomic=False)

    def failures(self, filter: Filter = _EVERY, *, most: int = 10_000, within: timedelta | None = None) -> Failures:
        """Failed jobs in groups, by task and error: what went wrong, how often, and since when.

        Errors are alike if their types are, and their messages but for numbers, ids and what stands in quotes. It
        counts the `most` that ended last, or, with `within`, as many as about so long allows; `back_to` of what it
        returns says how far that went. `Filter(ended_after=…)` says since when.
        """
        refuse_in_loop("app.jobs.failures", "await app.jobs.afailures(…)")
        return self._database.join(_failures(filter, most, within), atomic=False)

    async def afailures(
        self, filter: Filter = _EVERY, *, most: int = 10_000, within: timedelta | None = None
    ) -> Failures:
        """Failed jobs in groups, by task and error: what went wrong, how often, and since when.

        Errors are alike if their types are, and their messages but for numbers, ids and what stands in quotes. It
        counts the `most` that ended last, or, with `within`, as many as about so long allows; `back_to` of what it
        returns says how far that went. `Filter(ended_after=…)` says since when.
        """
        return await self._database.ajoin(_failures(filter, most, within), atomic=False)

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
        return self._database.join(partial(_events, checked_id(job_id), check_limit(limit), before), atomic=False)

    async def aevents(
        self, job_id: UUID | str | None = None, *, limit: int = 100, before: Event | None = None
    ) -> tuple[Event, ...]:
        """What was done, newest first: to one job, or at all; `before` is the last event of the answer before."""
        return await self._database.ajoin(
            partial(_events, checked_id(job_id), check_limit(limit), before), atomic=False
        )


def _page(filter: Filter, limit: int, before: Start | str | None, within: timedelta | None) -> Begin[Page]:
    most, start = check_limit(limit), start_of(filter, before)
    return lambda: pages.page(filter, limit=most, before=start, enough=enough_after(within))


def _failures(filter: Filter, most: int, within: timedelta | None) -> Begin[Failures]:
    if filter.states not in (None, {"failed"}):
        raise InvalidOption(f"state={shown(filter.state)}: failures() is about failed jobs; leave the state out")
    if type(most) is not int or not 1 <= most <= _MOST_COUNTED:
        raise InvalidOption(f"most={shown(most)} is out of range; use 1 to {_MOST_COUNTED:,}")
    return lambda: failure_groups(filter, most=most, enough=enough_after(within))


def _preview(filter: Filter, name: VerbName, within: timedelta | None) -> Begin[Preview]:
    verb = verb_named(name)
    return lambda: pages.preview(filter, verb, enough=enough_after(within))


def enough_after(within: timedelta | None) -> windows.Enough:
    """Says, from so long after now on, that it is enough."""
    if within is None:
        return windows.never
    end = time.monotonic() + within.total_seconds()
    return lambda: time.monotonic() >= end


def _events(
    job: UUID | None,
    limit: int,
    before: Event | None,
) -> Conversation[tuple[Event, ...]]:
    return tuple((yield events_store.latest(job=None if job is None else str(job), limit=limit, before=before)))


def checked_id(job_id: UUID | str | None) -> UUID | None:
    return None if job_id is None else check_id(job_id)


def check_limit(limit: int) -> int:
    """How many to answer at once."""
    if type(limit) is not int or not 1 <= limit <= _MOST_LISTED:
        raise InvalidOption(f"limit={shown(limit)} is out of range; use 1 to {_MOST_LISTED:,}, and before= for more")
    return limit


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


def _prepare(keep: Keep) -> Conversation[None]:
    """Make the partitions that history and events lack, where no worker has run for a month."""
    return make_partitions(longest=keep.longest)
