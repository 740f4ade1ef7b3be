"""Schedules as people use them: what is declared in code and what operators add are looked at and changed alike.

Whatever changes a schedule locks its row first: who fires it passes it over meanwhile, and then sees it changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from rowlock.app.checks import check_actor, check_why
from rowlock.app.job import Job, refuse_in_loop
from rowlock.app.jobs import check_limit
from rowlock.app.pauses import check_end
from rowlock.app.registry import Tasks
from rowlock.app.tasks import NO_JITTER, Call, schedule_spec
from rowlock.db.results import ResultWaiters
from rowlock.errors import InvalidOption
from rowlock.model.ids import new_id
from rowlock.model.names import MAX_SCHEDULE, check_text, shown
from rowlock.model.payload.arguments import encode_untyped
from rowlock.model.results import Firing
from rowlock.model.schedule.edit import ScheduleEdit
from rowlock.model.schedule.rule import CatchUp, Overlap
from rowlock.model.schedule.schedule import Schedule, ScheduleSpec
from rowlock.model.spec import Handler, Keep
from rowlock.store.query import Conversation
from rowlock.store.schedules import change
from rowlock.store.schedules.statements import MadeJob, readable

__all__ = ["Firing", "Schedule", "Schedules"]

T = TypeVar("T")

Begin = Callable[[], Conversation[T]]

_MOST_SLOTS: Final = 1_000


class Schedules:
    """The schedules of an app: `app.schedules.add("nightly", report.bind(), "0 3 * * *", tz="Europe/Paris")`.

    For everything that is changed an event is written: what was done, by whom (the user of this process, unless `by`
    says otherwise) and `why`.
    """

    def __init__(
        self, room: ResultWaiters, tasks: Tasks, handler_of: Callable[[str, int | None], Handler], keep: Keep
    ) -> None:
        self._database = room.database
        self._room = room
        self._tasks = tasks
        self._handler_of = handler_of
        self._keep = keep

    # Looking

    def list(self) -> tuple[Schedule, ...]:
        """Every schedule, by name."""
        return self._look("list", _list)

    async def alist(self) -> tuple[Schedule, ...]:
        """Every schedule, by name."""
        return await self._database.aconverse(_list, atomic=False)

    def get(self, name: str) -> Schedule:
        """The schedule of that name; ScheduleNotFound if there is none."""
        return self._look("get", _get(name))

    async def aget(self, name: str) -> Schedule:
        """The schedule of that name; ScheduleNotFound if there is none."""
        return await self._database.aconverse(_get(name), atomic=False)

    def next(self, name: str, count: int = 5) -> tuple[datetime, ...]:
        """Its next slots, in UTC: when its rule asks for jobs, jitter left out; a pause passes over those it covers."""
        return self._look("next", _next(name, count))

    async def anext(self, name: str, count: int = 5) -> tuple[datetime, ...]:
        """Its next slots, in UTC: when its rule asks for jobs, jitter left out; a pause passes over those it covers."""
        return await self._database.aconverse(_next(name, count), atomic=False)

    def firings(self, name: str, *, limit: int = 20) -> tuple[Firing, ...]:
        """What became of its latest slots, newest first: fired, or passed over and why. Kept for a week."""
        return self._look("firings", _firings(name, limit))

    async def afirings(self, name: str, *, limit: int = 20) -> tuple[Firing, ...]:
        """What became of its latest slots, newest first: fired, or passed over and why. Kept for a week."""
        return await self._database.aconverse(_firings(name, limit), atomic=False)

    # Changing

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
    ) -> Schedule:
        """Make jobs of this call by a rule, a cron expression or an interval; ScheduleError if the name is taken.

        `task.bind(…)`, `task.using(queue=…).bind(…)` and `app.call("module.task", kwargs={…})` give calls.
        """
        spec = schedule_spec(
            call, name=name, rule=rule, tz=tz, jitter=jitter, overlap=overlap, catch_up=catch_up, at_boot=at_boot
        )
        return self._change("add", _add(spec, by, why))

    async def aadd(
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
    ) -> Schedule:
        """Make jobs of this call by a rule, a cron expression or an interval; ScheduleError if the name is taken.

        `task.bind(…)`, `task.using(queue=…).bind(…)` and `app.call("module.task", kwargs={…})` give calls.
        """
        spec = schedule_spec(
            call, name=name, rule=rule, tz=tz, jitter=jitter, overlap=overlap, catch_up=catch_up, at_boot=at_boot
        )
        return await self._database.aconverse(_add(spec, by, why))

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
    ) -> Schedule:
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
        return self._change("edit", self._edit(name, edit, by, why))

    async def aedit(
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
    ) -> Schedule:
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
        return await self._database.aconverse(self._edit(name, edit, by, why))

    def pause(
        self,
        name: str,
        *,
        until: datetime | None = None,
        duration: timedelta | None = None,
        why: str | None = None,
        by: str | None = None,
    ) -> Schedule:
        """Pass over its slots: until then, for so long, or until somebody resumes. Jobs that were made go on."""
        return self._change("pause", _pause(name, until, duration, by, why))

    async def apause(
        self,
        name: str,
        *,
        until: datetime | None = None,
        duration: timedelta | None = None,
        why: str | None = None,
        by: str | None = None,
    ) -> Schedule:
        """Pass over its slots: until then, for so long, or until somebody resumes. Jobs that were made go on."""
        return await self._database.aconverse(_pause(name, until, duration, by, why))

    def resume(self, name: str, *, why: str | None = None, by: str | None = None) -> bool:
        """Let it go on with its next slot; answers whether it was paused."""
        return self._change("resume", _resume(name, by, why))

    async def aresume(self, name: str, *, why: str | None = None, by: str | None = None) -> bool:
        """Let it go on with its next slot; answers whether it was paused."""
        return await self._database.aconverse(_resume(name, by, why))

    def run_now(self, name: str, *, by: str | None = None, why: str | None = None) -> Job[Any]:
        """Make a job of it now, beside its slots, paused or not; its next slot sees that job as it sees the others."""
        job_id = new_id()
        return self._handle(job_id, self._change("run_now", _run_now(name, job_id, by, why)))

    async def arun_now(self, name: str, *, by: str | None = None, why: str | None = None) -> Job[Any]:
        """Make a job of it now, beside its slots, paused or not; its next slot sees that job as it sees the others."""
        job_id = new_id()
        running = _run_now(name, job_id, by, why)
        return self._handle(job_id, await self._database.aconverse(running))

    def remove(self, name: str, *, by: str | None = None, why: str | None = None) -> Schedule:
        """Remove a schedule, and answer what it was; the jobs it has made live on.

        ScheduleError while live workers declare it, for they would bring it back: pause it, or fix the code first.
        """
        return self._change("remove", _remove(name, by, why))

    async def aremove(self, name: str, *, by: str | None = None, why: str | None = None) -> Schedule:
        """Remove a schedule, and answer what it was; the jobs it has made live on.

        ScheduleError while live workers declare it, for they would bring it back: pause it, or fix the code first.
        """
        return await self._database.aconverse(_remove(name, by, why))

    # Between the lines

    def _look(self, verb: str, begin: Begin[T]) -> T:
        refuse_in_loop(f"app.schedules.{verb}", f"await app.schedules.a{verb}(…)")
        return self._database.converse(begin, atomic=False)

    def _change(self, verb: str, begin: Begin[T]) -> T:
        refuse_in_loop(f"app.schedules.{verb}", f"await app.schedules.a{verb}(…)")
        return self._database.converse(begin)

    def _handle(self, job_id: str, made: MadeJob) -> Job[Any]:
        handler = self._handler_of(made.task, made.version)
        return Job(job_id, task=made.task, queue=made.queue, room=self._room, handler=handler, keep=self._keep)

    def _edit(self, name: str, edit: ScheduleEdit, by: str | None, why: str | None) -> Begin[Schedule]:
        known, actor, reason = _known(name), check_actor(by), check_why(why)

        def encode(task: str, version: int | None) -> str:
            """The new arguments, checked where this process knows the task."""
            declared, args = self._tasks.get(task, version), dict(edit.args or {})
            return encode_untyped(args) if declared is None else declared.arguments.encode_json(args)

        return lambda: change.edit(known, edit, encode=encode, actor=actor, why=reason)


def _list() -> Conversation[tuple[Schedule, ...]]:
    return tuple(looked.schedule for looked in (yield from readable()))


def _get(name: str) -> Begin[Schedule]:
    known = _known(name)

    def begin() -> Conversation[Schedule]:
        return (yield from change.show(known)).schedule

    return begin


def _next(name: str, count: int) -> Begin[tuple[datetime, ...]]:
    known = _known(name)
    if type(count) is not int or not 1 <= count <= _MOST_SLOTS:
        raise InvalidOption(f"count={shown(count)} is out of range; use 1 to {_MOST_SLOTS:,}")
    return lambda: change.next_slots(known, count)


def _firings(name: str, limit: int) -> Begin[tuple[Firing, ...]]:
    known, most = _known(name), check_limit(limit)
    return lambda: change.firings(known, most)


def _add(spec: ScheduleSpec, by: str | None, why: str | None) -> Begin[Schedule]:
    actor, reason = check_actor(by), check_why(why)
    return lambda resend: change.add(spec, resend=resend, actor=actor, why=reason)


def _pause(
    name: str, until: datetime | None, duration: timedelta | None, by: str | None, why: str | None
) -> Begin[Schedule]:
    check_end(until, duration)
    known, actor, reason = _known(name), check_actor(by), check_why(why)
    return lambda: change.pause(known, until=until, duration=duration, actor=actor, why=reason)


def _resume(name: str, by: str | None, why: str | None) -> Begin[bool]:
    known, actor, reason = _known(name), check_actor(by), check_why(why)
    return lambda: change.resume(known, actor=actor, why=reason)


def _run_now(name: str, job_id: str, by: str | None, why: str | None) -> Begin[MadeJob]:
    known, actor, reason = _known(name), check_actor(by), check_why(why)
    return lambda: change.run_now(known, job_id=job_id, actor=actor, why=reason)


def _remove(name: str, by: str | None, why: str | None) -> Begin[Schedule]:
    known, actor, reason = _known(name), check_actor(by), check_why(why)
    return lambda: change.remove(known, actor=actor, why=reason)


def _known(name: str) -> str:
    """A name to look for: SQL may have made schedules whose names no code could declare."""
    return check_text("schedule name", name, limit=MAX_SCHEDULE)
