"""Schedules: what code declares and operators add, listed and changed alike.

A change locks the schedule's row first: a worker that fires schedules passes it over meanwhile, and then sees it
changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, TypeVar

from rowlock.app.checks import check_actor, check_limit, check_why
from rowlock.app.job import Job
from rowlock.app.pauses import check_end
from rowlock.app.resources import Resources
from rowlock.app.tasks import NO_JITTER, Call, schedule_spec
from rowlock.app.verbs import Exchange, Verb, averb, verb
from rowlock.errors import InvalidOption
from rowlock.model.ids import new_id
from rowlock.model.names import MAX_SCHEDULE, check_text, shown
from rowlock.model.results import Firing
from rowlock.model.schedule.edit import ScheduleEdit
from rowlock.model.schedule.rule import CatchUp, Overlap
from rowlock.model.schedule.schedule import Schedule
from rowlock.store.query import Conversation
from rowlock.store.schedules import change
from rowlock.store.schedules.statements import readable

__all__ = ["Firing", "Schedule", "Schedules"]

T = TypeVar("T")

_MOST_SLOTS: Final = 1_000


class Schedules:
    """The schedules of an app: `app.schedules.add("nightly", report.bind(), "0 3 * * *", tz="Europe/Paris")`.

    For everything that is changed an event is written: what was done, by whom (the user of this process, unless `by`
    says otherwise) and `why`.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._database = resources.database

    # Reading

    @verb("app.schedules")
    def list(self) -> Verb[tuple[Schedule, ...]]:
        """Every schedule, by name."""
        return tuple(looked.schedule for looked in (yield from self._read(readable)))

    alist = averb(list)  # noqa: A003  the verb above

    @verb("app.schedules")
    def get(self, name: str) -> Verb[Schedule]:
        """The schedule of that name; ScheduleNotFound if there is none."""
        return (yield from self._read(partial(change.show, _check_name(name)))).schedule

    aget = averb(get)

    @verb("app.schedules")
    def next(self, name: str, count: int = 5) -> Verb[tuple[datetime, ...]]:
        """The next slots of a schedule, in UTC, without jitter; a pause passes over those it covers."""
        known = _check_name(name)
        if type(count) is not int or not 1 <= count <= _MOST_SLOTS:
            raise InvalidOption(f"count={shown(count)} is out of range; use 1 to {_MOST_SLOTS:,}")
        return self._read(partial(change.next_slots, known, count))

    anext = averb(next)  # noqa: A003  the verb above

    @verb("app.schedules")
    def firings(self, name: str, *, limit: int = 20) -> Verb[tuple[Firing, ...]]:
        """The latest slots of a schedule, newest first: fired, or passed over and why. Kept for a week."""
        return self._read(partial(change.firings, _check_name(name), check_limit(limit)))

    afirings = averb(firings)

    # Changing

    @verb("app.schedules")
    def add(
        self,
        name: str,
        call: Call[Any],
        rule: str | timedelta,
        *,
        tz: str | None = None,
        jitter: timedelta = NO_JITTER,
        overlap: Overlap = "skip",
        catch_up: CatchUp = "last",
        at_boot: bool = False,
        by: str | None = None,
        why: str | None = None,
    ) -> Verb[Schedule]:
        """Make jobs of this call by a rule, a cron expression or an interval; ScheduleError if the name is taken.

        `task.bind(…)`, `task.using(queue=…).bind(…)` and `app.call("module.task", x=…)` give calls.
        """
        spec = schedule_spec(
            call, name=name, rule=rule, tz=tz, jitter=jitter, overlap=overlap, catch_up=catch_up, at_boot=at_boot
        )
        adding = partial(change.add, spec, actor=check_actor(by), why=check_why(why))
        return (yield from Exchange(self._database, adding, resend=partial(adding, resend=True)))

    aadd = averb(add)

    @verb("app.schedules")
    def edit(
        self,
        name: str,
        *,
        rule: str | timedelta | None = None,
        tz: str | None = None,
        args: Mapping[str, object] | None = None,
        queue: str | None = None,
        priority: int | None = None,
        expires: timedelta | None = None,
        jitter: timedelta | None = None,
        overlap: Overlap | None = None,
        catch_up: CatchUp | None = None,
        at_boot: bool | None = None,
        reset: bool = False,
        by: str | None = None,
        why: str | None = None,
    ) -> Verb[Schedule]:
        """Change a schedule; what is not given stays as it is, and expires=timedelta(0) takes that away.

        Of one that code declares, the change outlasts deploys, until `reset` goes back to what code says.
        """
        edit = ScheduleEdit(
            rule=rule,
            tz=tz,
            args=args,
            queue=queue,
            priority=priority,
            expires=expires,
            jitter=jitter,
            overlap=overlap,
            catch_up=catch_up,
            at_boot=at_boot,
            reset=reset,
        )
        encode = partial(self._resources.encode, args=dict(args or {}))
        editing = partial(
            change.edit, _check_name(name), edit, encode=encode, actor=check_actor(by), why=check_why(why)
        )
        return (yield from Exchange(self._database, editing))

    aedit = averb(edit)

    @verb("app.schedules")
    def pause(
        self,
        name: str,
        *,
        until: datetime | None = None,
        duration: timedelta | None = None,
        why: str | None = None,
        by: str | None = None,
    ) -> Verb[Schedule]:
        """Pause a schedule: pass over its slots until `until`, for `duration`, or until somebody resumes."""
        check_end(until, duration)
        pausing = partial(
            change.pause,
            _check_name(name),
            until=until,
            duration=duration,
            actor=check_actor(by),
            why=check_why(why),
        )
        return (yield from Exchange(self._database, pausing))

    apause = averb(pause)

    @verb("app.schedules")
    def resume(self, name: str, *, why: str | None = None, by: str | None = None) -> Verb[bool]:
        """Resume a schedule with its next slot; returns whether it was paused."""
        resuming = partial(change.resume, _check_name(name), actor=check_actor(by), why=check_why(why))
        return (yield from Exchange(self._database, resuming))

    aresume = averb(resume)

    @verb("app.schedules")
    def run_now(self, name: str, *, by: str | None = None, why: str | None = None) -> Verb[Job[Any]]:
        """Make a job of a schedule now, beside its slots, paused or not; its next slot sees that job like others."""
        job_id = new_id()
        running = partial(change.run_now, _check_name(name), job_id=job_id, actor=check_actor(by), why=check_why(why))
        made = yield from Exchange(self._database, running)
        return self._resources.job(job_id, task=made.task, version=made.version, queue=made.queue)

    arun_now = averb(run_now)

    @verb("app.schedules")
    def remove(self, name: str, *, by: str | None = None, why: str | None = None) -> Verb[Schedule]:
        """Remove a schedule, and return what it was; the jobs it has made live on.

        ScheduleError while live workers declare it, for they would bring it back: pause it, or fix the code first.
        """
        removing = partial(change.remove, _check_name(name), actor=check_actor(by), why=check_why(why))
        return (yield from Exchange(self._database, removing))

    aremove = averb(remove)

    def _read(self, begin: Callable[[], Conversation[T]]) -> Verb[T]:
        return (yield from Exchange(self._database, begin, atomic=False))


def _check_name(name: str) -> str:
    """A name to look for: SQL may have made schedules whose names no code could declare."""
    return check_text("schedule name", name, limit=MAX_SCHEDULE)
