"""Jobs: what operators read of them, and change."""
# ruff: noqa: A002  a filter is called filter

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from rowlock.app.checks import check_actor, check_limit, check_optional_id, check_why, enough_after
from rowlock.app.enqueue import Enqueuer, Logged
from rowlock.app.job import Job, show
from rowlock.app.resources import Resources
from rowlock.app.tasks import Call
from rowlock.app.verbs import Exchange, Verb, averb, verb
from rowlock.errors import InvalidArguments, InvalidOption, RowlockError
from rowlock.model.failure_groups import FailureGroup, Failures
from rowlock.model.filter import Filter, check_id
from rowlock.model.names import check_priority, check_queue, shown
from rowlock.model.pause import Pause
from rowlock.model.record import JobRecord
from rowlock.model.results import Cursor, Done, Event, Page, Preview, start_of
from rowlock.model.verb import VERBS, VerbName, verb_named
from rowlock.store import events as events_store
from rowlock.store import operations
from rowlock.store.find import pages
from rowlock.store.operations import Act, BulkOperation
from rowlock.store.query import Conversation, alone
from rowlock.store.schema import make_partitions

if TYPE_CHECKING:
    from rowlock.model.explanation import Explanation

__all__ = ["Cursor", "Done", "Event", "FailureGroup", "Failures", "Jobs", "Page", "Pause", "Preview", "VerbName"]

_MOST_COUNTED: Final = 100_000
_EVERY: Final = Filter()

R = TypeVar("R")
T = TypeVar("T")

Track = Callable[[Done], object]


class Jobs:
    """The jobs of an app, for operators: `app.jobs.retry(Filter(state="failed", task="send"), why="host is back")`.

    For every job that a verb changes it writes an event: what was done, by whom (the user of this process, unless `by`
    says otherwise) and `why`. `track` is called after every window with what the verb has done so far.
    """

    def __init__(self, resources: Resources, enqueuer: Enqueuer) -> None:
        self._resources = resources
        self._database = resources.database
        self._keep = resources.keep
        self._enqueuer = enqueuer

    # Reading

    @verb("app.jobs")
    def list(
        self,
        filter: Filter = _EVERY,
        *,
        limit: int = 50,
        before: UUID | Cursor | str | None = None,
        time_limit: timedelta | None = None,
    ) -> Verb[Page]:
        """The newest jobs that match, live and ended; `before` is the `next` of the page before.

        Ended jobs alone, by an ended state or `ended_after`, are listed by when they ended, latest first.
        With `time_limit` it looks for about so long and returns what it has found; if there is a `next`, there may be
        more.
        """
        most, start = check_limit(limit), start_of(filter, before)
        return self._read(lambda: pages.page(filter, limit=most, before=start, enough=enough_after(time_limit)))

    alist = averb(list)  # noqa: A003  the verb above

    @verb("app.jobs")
    def failures(
        self, filter: Filter = _EVERY, *, most: int = 10_000, time_limit: timedelta | None = None
    ) -> Verb[Failures]:
        """Failed jobs in groups, by task and error: what went wrong, how often, and since when.

        Errors are alike if their types are, and their messages but for numbers, ids and what stands in quotes. It
        counts the `most` that ended last, or, with `time_limit`, as many as about so long allows; `back_to` of what it
        returns says how far that went. `Filter(ended_after=…)` says since when.
        """
        if filter.states not in (None, {"failed"}):
            raise InvalidOption(f"state={shown(filter.state)}: failures() is about failed jobs; leave the state out")
        if type(most) is not int or not 1 <= most <= _MOST_COUNTED:
            raise InvalidOption(f"most={shown(most)} is out of range; use 1 to {_MOST_COUNTED:,}")
        return self._read(lambda: pages.failure_groups(filter, most=most, enough=enough_after(time_limit)))

    afailures = averb(failures)

    @verb("app.jobs")
    def preview(self, verb: VerbName, filter: Filter, *, time_limit: timedelta | None = None) -> Verb[Preview]:
        """Preview a verb: what it would change now, without doing it; with `time_limit`, as much as that allows."""
        named = verb_named(verb)
        return self._read(lambda: pages.preview(filter, named, enough=enough_after(time_limit)))

    apreview = averb(preview)

    @verb("app.jobs")
    def events(
        self, job_id: UUID | str | None = None, *, limit: int = 100, before: Event | None = None
    ) -> Verb[tuple[Event, ...]]:
        """The events, newest first, of one job or of all; `before` is the last one of the page before."""
        job = check_optional_id(job_id)
        query = events_store.latest(job=None if job is None else str(job), limit=check_limit(limit), before=before)
        return tuple((yield from self._read(partial(alone, query))))

    aevents = averb(events)

    def _read(self, begin: Callable[[], Conversation[T]]) -> Verb[T]:
        return (yield from Exchange(self._database, begin, atomic=False))

    # Changing all that match: newest first, a window at a time, each in a transaction of its own. So locks are short,
    # and a verb that is stopped in the middle goes on from where it stood. An empty filter is refused (Filter.all).

    @verb("app.jobs")
    def retry(
        self,
        filter: Filter,
        *,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Verb[Done]:
        """Run ended jobs again, each under its old id and with all its attempts before it.

        These are failed jobs; cancelled and succeeded ones only if the filter's `state` names them, and are
        passed over otherwise, as is a job whose key is held by another one now. A job that was cancelled before its
        time keeps its `run_at`. A workflow goes on from the step that has failed; if something was
        undone, or it had succeeded, it starts from the beginning.
        """
        return self._apply(_work("retry", filter, by, why, on_ended=operations.retry), before, track)

    aretry = averb(retry)

    @verb("app.jobs")
    def cancel(
        self,
        filter: Filter,
        *,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Verb[Done]:
        """Cancel jobs that have not ended: ready and waiting ones end at once, running ones when their attempts do.

        None of them succeeds or runs again. Running handlers are asked to stop; coroutines are cancelled.
        Workflows that have begun, and children, end when a worker has undone what they did.
        """
        cancelling = partial(operations.cancel, states=VERBS["cancel"].states(filter), keep=self._keep.cancelled)
        return self._apply(_work("cancel", filter, by, why, on_live=cancelling), before, track)

    acancel = averb(cancel)

    @verb("app.jobs")
    def delete(
        self,
        filter: Filter,
        *,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Verb[Done]:
        """Remove jobs, live or ended, and leave only the events; running ones are passed over.

        So are workflows that have begun, and children: cancel them first.
        """
        work = _work("delete", filter, by, why, on_live=operations.delete, on_ended=operations.delete_ended)
        return self._apply(work, before, track)

    adelete = averb(delete)

    @verb("app.jobs")
    def move(
        self,
        filter: Filter,
        *,
        queue: str,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Verb[Done]:
        """Put ready and waiting jobs on another queue, where their run_at gives them their place."""
        moving = partial(operations.move, queue=check_queue(queue))
        return self._apply(_work("move", filter, by, why, on_live=moving), before, track)

    amove = averb(move)

    @verb("app.jobs")
    def reprioritise(
        self,
        filter: Filter,
        *,
        priority: int,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Verb[Done]:
        """Give ready and waiting jobs another priority."""
        giving = partial(operations.reprioritise, priority=check_priority(priority))
        return self._apply(_work("reprioritise", filter, by, why, on_live=giving), before, track)

    areprioritise = averb(reprioritise)

    @verb("app.jobs")
    def run_next(
        self,
        filter: Filter,
        *,
        by: str | None = None,
        why: str | None = None,
        before: UUID | str | None = None,
        track: Track | None = None,
    ) -> Verb[Done]:
        """Let ready jobs, delayed ones too, run before all others of their queues: due now, and of priority 4.

        A workflow that sleeps goes on sleeping: it is passed over.
        """
        return self._apply(_work("run_next", filter, by, why, on_live=operations.run_next), before, track)

    arun_next = averb(run_next)

    def _apply(self, work: BulkOperation, before: UUID | str | None, track: Track | None) -> Verb[Done]:
        done = Done(work.verb.name, before=check_optional_id(before))
        yield from Exchange(self._database, partial(make_partitions, longest=self._keep.longest))
        while True:
            done = yield from Exchange(self._database, partial(work.window, done))
            if track is not None:
                track(done)
            if done.before is None:
                return done

    # One job

    @verb("app.jobs")
    def get(self, job_id: UUID | str) -> Verb[Job[Any]]:
        """The job of that id, live or ended; JobNotFound if there is none."""
        record = yield from Exchange(self._database, partial(show, check_id(job_id)), atomic=False)
        return self._resources.job(str(record.id), task=record.task, version=record.version, queue=record.queue)

    aget = averb(get)

    @verb("app.jobs")
    def explain(self, job_id: UUID | str) -> Verb[Explanation]:
        """Explain why a job is not running, or what became of it: one sentence, the facts behind it, and what to do."""
        from rowlock.explain import explain_job  # noqa: PLC0415  whoever does not ask why does without

        explaining = partial(explain_job, check_id(job_id), known=self._resources.tasks.handler, keep=self._keep)
        return (yield from Exchange(self._database, explaining))

    aexplain = averb(explain)

    @verb("app.jobs")
    def edit(
        self, job_id: UUID | str, *, args: Mapping[str, object], by: str | None = None, why: str | None = None
    ) -> Verb[tuple[str, ...]]:
        """Give a job that has not started, or waits for its next attempt, other arguments; returns their names.

        They must fit the task, if this process knows it. A job that runs or has ended is left alone, and so are
        workflows that have begun and children: then it raises RowlockError, and JobNotFound if there is no such job.
        """
        known, actor, reason = check_id(job_id), check_actor(by), check_why(why)
        if not isinstance(args, Mapping):
            raise InvalidArguments(f"args={shown(args)} must be a mapping of arguments by name; write args={{'x': 1}}")

        def editing() -> Conversation[tuple[str, ...]]:
            while True:  # what changes between the two statements is seen at the next look
                record = yield from show(known)
                if (fault := _fault(record)) is not None:
                    raise RowlockError(f"job {known} {fault}")
                text = self._resources.encode(record.task, record.version, args)
                edited: list[Any] = yield operations.edit(str(known), args=text, actor=actor, why=reason)
                if edited:
                    return tuple(edited[0])

        yield from Exchange(self._database, partial(make_partitions, longest=self._keep.longest))
        return (yield from Exchange(self._database, editing))

    aedit = averb(edit)

    @verb("app.jobs")
    def enqueue(
        self, call: Call[R], *, like: UUID | str | None = None, by: str | None = None, why: str | None = None
    ) -> Verb[Job[R]]:
        """Enqueue a call by hand: an event says who did it and why, and after which job it was made, if `like` one."""
        logged = Logged(check_actor(by), check_why(why), check_optional_id(like))
        yield from Exchange(self._database, partial(make_partitions, longest=self._keep.longest))
        return (yield from self._enqueuer.logged(call, logged))

    aenqueue = averb(enqueue)


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
    verb.check(filter)
    return BulkOperation(verb, filter, check_actor(by), check_why(why), on_live, on_ended)


def _fault(record: JobRecord) -> str | None:
    """Why a job's arguments cannot be changed, and what to do instead."""
    if record.ended:
        return f"has {record.state}, and what it was given stays as it was; enqueue another one like it"
    if record.begun:
        return "is a workflow that has begun, or the child of one, and what it was given is remembered; cancel it first"
    if record.state == "running":
        return "is running with the arguments it has; cancel it and enqueue another one, or wait for its next attempt"
    return None
