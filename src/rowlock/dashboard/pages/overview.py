"""The page /: what needs attention, how much is done, and how fast."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Final, Literal, TypeVar

from pydantic import Field

from rowlock.dashboard.context import STATEMENT_TIMEOUT, RequestContext
from rowlock.dashboard.drawings.charts import Chart, charts
from rowlock.dashboard.notices import Notice, notices
from rowlock.dashboard.page import DashboardPage, Params
from rowlock.doctor.examine import Inspection, ainspect
from rowlock.doctor.work import WHY_PASSED
from rowlock.model.names import MAX_NAME
from rowlock.model.pause import Pause
from rowlock.model.schedule.schedule import Schedule
from rowlock.model.stats.histogram import Histogram
from rowlock.model.stats.series import Series
from rowlock.model.stats.stats import Count, Durations, Rates, Stats, WorkerStats
from rowlock.store import pauses
from rowlock.store.doctor.checkup_facts import Facts
from rowlock.store.schedules import statements
from rowlock.store.stats import counts, minutes
from rowlock.store.stats.collect import LOCKED

Span = Literal["1h", "6h", "24h"]

SPANS: Final[dict[Span, timedelta]] = {
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
}
_IN_WORDS: Final[dict[Span, str]] = {"1h": "hour", "6h": "6 hours", "24h": "24 hours"}
# A day of thirty pairs of queue and task; of a larger fleet, its last hours.
_MOST_MINUTES: Final = 60_000
_MOST_LINES: Final = 30
_TOO_LONG: Final = "57014"
_MOST_APPROVALS: Final = 1_000
_HEALTH_FOR: Final = timedelta(seconds=15)
_HEALTH_WHEN_LOCKED: Final = timedelta(seconds=2)

T = TypeVar("T")


class OverviewParams(Params):
    """Over which span, and of which queue or task the charts are."""

    span: Span = "1h"
    queue: Annotated[str, Field(max_length=MAX_NAME)] | None = None
    task: Annotated[str, Field(max_length=MAX_NAME)] | None = None


@dataclass(frozen=True, slots=True)
class Now:
    """The present: jobs that are due, and for how long; jobs that run, workers and slots. None: unknown."""

    rates: Rates | None
    runnable: Count | None
    running: Count | None
    delayed: Count | None
    oldest: timedelta | None
    oldest_queue: str | None
    workers: int | None
    lost: int  # workers whose lease has run out
    slots: int
    held: int


@dataclass(frozen=True, slots=True)
class Totals:
    """What was done within the span: how many ended, how long claimed jobs had been due, how long attempts took."""

    succeeded: int
    failed: int
    cancelled: int
    retried: int
    waits: Durations | None
    durations: Durations | None


@dataclass(frozen=True, slots=True)
class QueueLine:
    """A queue in the table."""

    name: str
    rates: Rates | None
    runnable: Count | None
    oldest: timedelta | None
    is_paused: bool | None
    done: Totals


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task in the table."""

    name: str
    rates: Rates | None
    failed: Count | None  # in history
    is_paused: bool | None
    done: Totals


@dataclass(frozen=True, slots=True)
class OverviewShown:
    """What needs attention, the moment, the span as a series, and queues and tasks, the busiest first."""

    at: datetime
    window: timedelta  # what rates are over
    notices: tuple[Notice, ...]
    looked_at: int  # by the doctor
    now: Now
    done: Totals
    series: Series | None
    queues: tuple[QueueLine, ...]
    tasks: tuple[TaskLine, ...]
    more_queues: int
    more_tasks: int
    unknown: Mapping[str, str]

    @property
    def charts(self) -> tuple[Chart, ...]:
        """The series as charts."""
        return () if self.series is None else charts(self.series)

    @property
    def is_idle(self) -> bool:
        """Whether nothing was ever done, as far as can be seen."""
        points = self.series.points if self.series else ()
        return not any(point.claimed for point in points) and not self.queues and not self.tasks


async def load(context: RequestContext, params: OverviewParams) -> OverviewShown:
    """Load everything that a person may have to know first."""
    length, unknown = SPANS[params.span], dict[str, str]()
    breakdown = context.reader.database.arun(minutes.breakdown(length, most=_MOST_MINUTES))
    # Side by side, each on a connection of its own: one after the other they would take as long as all together.
    stats, (facts, checkup), series, done, known, approvals = await asyncio.gather(
        context.reader.astats(),
        health(context),
        in_time("series", context.reader.arates(span=length, queue=params.queue, task=params.task), unknown),
        in_time("breakdown", breakdown, unknown),
        in_time("schedules", _schedules(context), unknown),
        in_time("approvals", _waiting_for_people(context), unknown),
    )
    if LOCKED in stats.unknown.values() and checkup["table locks"].level == "green":
        facts, checkup = await health(
            context, max_age=_HEALTH_WHEN_LOCKED
        )  # it was all well when the doctor last looked
    done, known = done or [], known or ()
    paused = await in_time("pauses", context.reader.database.arun(pauses.listed()), unknown) or ()
    unknown |= {**stats.unknown, **facts.unknown}
    by_queue, by_task = _summed(done, lambda part: part.queue), _summed(done, lambda part: part.task)
    queues, tasks = _queues(stats, by_queue), _tasks(stats, by_task)
    return OverviewShown(
        at=stats.at,
        window=stats.window,
        notices=notices(
            stats,
            checkup,
            pauses=paused,
            schedules=known,
            recent_failures={name: one.failed for name, one in by_task.items() if one.failed},
            window=_IN_WORDS[params.span],
            approvals=approvals or (),
            passing=_passing(facts),
        ),
        looked_at=len(checkup.findings),
        now=_now(stats, paused),
        done=_summed(done, lambda _part: "all").get("all", _NOTHING),
        series=series,
        queues=tuple(queues[:_MOST_LINES]),
        tasks=tuple(tasks[:_MOST_LINES]),
        more_queues=max(0, len(queues) - _MOST_LINES),
        more_tasks=max(0, len(tasks) - _MOST_LINES),
        unknown=unknown,
    )


async def _waiting_for_people(context: RequestContext) -> list[counts.ApprovalsCount]:
    """The workflows that wait for somebody to fill in a form."""
    return await context.reader.database.arun(counts.approvals(_MOST_APPROVALS))


async def _schedules(context: RequestContext) -> tuple[Schedule, ...]:
    """Every schedule, without arguments: nothing here shows them, and this is loaded every few seconds."""
    return tuple(row.schedule for row in await context.reader.database.arun(statements.outlined(None)))


def _passing(facts: Facts) -> dict[str, str]:
    """The schedules that have started no job in their last slots, and why."""
    idle = facts.schedules.idle if facts.schedules else {}
    return {name: WHY_PASSED.get(reason, reason) for name, reason in idle.items()}


async def health(context: RequestContext, *, max_age: timedelta = _HEALTH_FOR) -> Inspection:
    """The doctor's findings, from the cache: they take forty queries and change slowly."""
    examine = partial(ainspect, context.reader.database, longest=context.reader.keep.longest)
    return await context.cache.get("health", max_age=max_age, load=examine)


async def in_time(part: str, value: Awaitable[T], unknown: dict[str, str]) -> T | None:
    """The part's value, or None if PostgreSQL took too long: the rest of the page is worth seeing all the same."""
    try:
        return await value
    except Exception as error:
        if getattr(error, "sqlstate", None) != _TOO_LONG:
            raise
        unknown[part] = f"took longer than {STATEMENT_TIMEOUT.total_seconds():.0f} s"
        return None


_NOTHING: Final = Totals(0, 0, 0, 0, None, None)


def _summed(parts: Iterable[minutes.SumsByTask], name: Callable[[minutes.SumsByTask], str]) -> dict[str, Totals]:
    found: dict[str, list[minutes.Sums]] = {}
    for part in parts:
        found.setdefault(name(part), []).append(part.sums)
    return {
        key: Totals(
            succeeded=sum(one.succeeded for one in sums),
            failed=sum(one.failed for one in sums),
            cancelled=sum(one.cancelled for one in sums),
            retried=sum(one.retried for one in sums),
            waits=Durations.of(sum((one.waits for one in sums), Histogram())),
            durations=Durations.of(sum((one.durations for one in sums), Histogram())),
        )
        for key, sums in found.items()
    }


def _now(stats: Stats, pauses: Iterable[Pause]) -> Now:
    queues = stats.queues
    paused = {pause.queue for pause in pauses}
    due = {name: one.oldest for name, one in queues.items() if one.oldest is not None and name not in paused}
    oldest = max(due, key=lambda name: due[name], default=None)
    workers = stats.fleet.workers
    live = [worker for worker in workers or () if _is_live(worker)]
    return Now(
        rates=None if "rates" in stats.unknown else _rates(one.rates for one in queues.values()),
        runnable=None if "runnable" in stats.unknown else _all(one.runnable for one in queues.values()),
        running=None if "running" in stats.unknown else _all(one.running for one in queues.values()),
        delayed=None if "runnable" in stats.unknown else _all(one.delayed for one in queues.values()),
        oldest=None if oldest is None else due[oldest],
        oldest_queue=oldest,
        workers=None if workers is None else len(live),
        lost=len(workers or ()) - len(live),
        slots=sum(worker.slots for worker in live),
        held=sum(worker.held for worker in live),
    )


def _is_live(worker: WorkerStats) -> bool:
    return worker.lease_left > timedelta(0)


def _rates(found: Iterable[Rates | None]) -> Rates:
    known = [one for one in found if one is not None]
    return Rates(*(sum(getattr(one, name) for one in known) for name in Rates.__slots__))


def _all(counts: Iterable[Count | None]) -> Count:
    known = [one for one in counts if one is not None]
    return Count(sum(one.value for one in known), more=any(one.more for one in known))


def _queues(stats: Stats, done: Mapping[str, Totals]) -> list[QueueLine]:
    known = stats.queues
    lines = [
        QueueLine(
            name=name,
            rates=known[name].rates if name in known else None,
            runnable=known[name].runnable if name in known else Count(0),
            oldest=known[name].oldest if name in known else None,
            is_paused=known[name].paused if name in known else False,
            done=done.get(name, _NOTHING),
        )
        for name in {*known, *done}
    ]
    return sorted(lines, key=lambda line: (-_ended(line.done), line.name))


def _tasks(stats: Stats, done: Mapping[str, Totals]) -> list[TaskLine]:
    known = stats.tasks
    lines = [
        TaskLine(
            name=name,
            rates=known[name].rates if name in known else None,
            failed=known[name].failed if name in known else Count(0),
            is_paused=known[name].paused if name in known else False,
            done=done.get(name, _NOTHING),
        )
        for name in {*known, *done}
    ]
    return sorted(lines, key=lambda line: (-_ended(line.done), line.name))


def _ended(done: Totals) -> int:
    return done.succeeded + done.failed + done.cancelled


PAGE = DashboardPage(
    "overview",
    "/",
    OverviewParams,
    OverviewShown,
    load,
    says="What needs attention, how much is done and how fast: now, and over an hour, six hours or a day.",
    every=timedelta(seconds=5),
    nav="overview",
    key="o",
)
