"""Workers: registration, leases, parking, and the duties of the fleet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from rowlock.store.query import Query, Row, array, first, interval, plain_array


class Renewed(NamedTuple):
    """A renewed lease, and the schema as it is now."""

    now: float  # the database's time, in seconds since 1970
    version: int | None
    compatible: int | None  # the oldest code that can use it


class Registered(NamedTuple):
    """A new worker's first answer."""

    now: float  # the database's time, in seconds since 1970
    unwatched: float | None  # for so many seconds nobody has looked for dead workers; None: nobody ever has


class DeadWorkers(NamedTuple):
    """Dead workers: whether there are any, and which have lost their lease."""

    dead: bool  # a lease has run out
    cut: list[str]  # HOST:PID of those that have lost their lease, because they had lost their lock


class Holding(NamedTuple):
    """What a worker held at a look: id and token of each attempt. Claims `since` then are still to be looked for."""

    attempts: Sequence[tuple[str, str]]
    since: str | None = None


# Before the first look: every claim is to be looked for.
UNSEEN = Holding(())


def register(
    *,
    worker: str,
    host: str,
    pid: int,
    queues: Iterable[str],
    slots: int,
    tasks: Iterable[str],
    schedules: Iterable[str],
    version: str,
    lease: timedelta,
    restarts: int = 0,
    fault: str | None = None,
) -> Query[Registered]:
    """Enter a worker process, under a lease.

    `restarts` is how often in a row it restarted after an internal error, and `fault` the last of those.
    """
    return Query(
        "worker_register",
        {
            "worker": worker,
            "host": host,
            "pid": str(pid),
            "queues": array(queues),
            "slots": str(slots),
            "tasks": array(tasks),
            "schedules": array(schedules),
            "version": version,
            "lease": interval(lease),
            "restarts": str(restarts),
            "fault": fault,
        },
        lambda row: Registered(*row),
    )


def serve(*, worker: str, queues: Iterable[str]) -> Query[None]:
    """Say which queues a worker looks into now."""
    return Query("worker_serve", {"worker": worker, "queues": array(queues)}, _nothing)


def serving(*, queues: Iterable[str], but: str) -> Query[str]:
    """Those of these queues that some live worker, not this one, looks into."""
    return Query("worker_serving", {"queues": array(queues), "but": but}, first)


def known_tasks() -> Query[str]:
    """The tasks that live workers know."""
    return Query("worker_know", {}, first)


def renew(*, worker: str, blocked: float | None = None, blocked_by: str | None = None) -> Query[Renewed]:
    """Renew a lease. No row means that it is lost.

    `blocked` is for how many seconds the worker's event loop has stood still, and `blocked_by` what blocks it.
    """
    said = None if blocked is None else str(blocked)
    return Query("worker_renew", {"worker": worker, "blocked": said, "blocked_by": blocked_by}, _renewed)


def _renewed(row: Row) -> Renewed:
    now, version, compatible, _setting = row
    return Renewed(now, version, compatible)


def held(*, worker: str, seen: Holding = UNSEEN) -> Query[Holding]:
    """What a worker holds, as the database knows it: of what it was seen to hold, and what it has claimed since."""
    ids, tokens = _arrays(seen.attempts)
    return Query("worker_held", {"worker": worker, "ids": ids, "tokens": tokens, "since": seen.since}, _held)


def _held(row: Row) -> Holding:
    ids, tokens, since = row
    return Holding(list(zip(ids, tokens, strict=True)), since)


def hand_back(*, worker: str, known: Iterable[str] = (), seen: Holding = UNSEEN) -> Query[str]:
    """Give back every job that the database says a worker holds, but for the attempts whose tokens it knows."""
    ids, tokens = _arrays(seen.attempts)
    return Query(
        "job_hand_back",
        {"worker": worker, "known": plain_array(known), "ids": ids, "tokens": tokens, "since": seen.since},
        first,
    )


def disown(attempts: Iterable[tuple[str, str]], *, worker: str) -> Query[str]:
    """Give back the jobs of claims that a worker was never told of, by id and token; returns their ids."""
    ids, tokens = _arrays(attempts)
    return Query("job_disown", {"worker": worker, "ids": ids, "tokens": tokens}, first)


def _arrays(attempts: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Ids and tokens, in the order in which rows are locked."""
    pairs = sorted(attempts)
    return plain_array(job_id for job_id, _ in pairs), plain_array(token for _, token in pairs)


def enter(*, worker: str) -> Query[bool]:
    """Show that a worker's renewing session lives; returns whether it has the lock that shows it."""
    return Query("worker_enter", {"worker": worker}, first)


def leave(*, worker: str) -> Query[None]:
    """Take a worker off the books."""
    return Query("worker_leave", {"worker": worker}, _nothing)


def find_dead(*, worker: str, pause: timedelta) -> Query[DeadWorkers]:
    """Look for dead workers, unless another has looked less than this pause ago: then it finds none."""
    milliseconds = str(round(pause.total_seconds() * 1000))
    return Query("worker_look", {"worker": worker, "pause": milliseconds}, lambda row: DeadWorkers(*row))


def bury() -> Query[bool]:
    """Remove workers that are dead and hold nothing; returns whether any others are dead."""
    return Query("worker_bury", {}, first)


def tell(
    *,
    worker: str,
    stuck: int = 0,
    stopping: bool = False,
    restarts: int = 0,
    fault: str | None = None,
    failing: str | None = None,
    since: datetime | None = None,
) -> Query[None]:
    """Say how a worker is: how many attempts go on after their time-out, whether it claims no more, and what is wrong.

    `fault` is why it restarted `restarts` times in a row; without any, why it claims no more. `failing` is what it
    tries again and again, `since` when.
    """
    return Query(
        "worker_tell",
        {
            "worker": worker,
            "stuck": str(stuck),
            "stopping": str(stopping),
            "restarts": str(restarts),
            "fault": fault,
            "failing": failing,
            "since": None if since is None else since.isoformat(),
        },
        _nothing,
    )


def park(*, worker: str, queues: Iterable[str], before: int = 0, renews: bool = False) -> Query[int]:
    """Ask to be notified of new jobs, in place of the parking `before`; returns the parking's number.

    One that `renews` keeps the one before, as long as enqueues into all of these queues find that one or another.
    """
    return Query(
        "worker_park",
        {"worker": worker, "queues": array(queues), "before": str(before), "renews": str(renews).lower()},
        first,
    )


def unpark(*, worker: str, queues: Iterable[str], number: int) -> Query[None]:
    """Ask not to be notified any more; `number` is that of the parking."""
    return Query("worker_unpark", {"worker": worker, "queues": array(queues), "number": str(number)}, _nothing)


def _nothing(_row: object) -> None:
    return None


class DutyTurn(NamedTuple):
    """Whether a duty is ours now; if it comes round every so often, whether the last turn of it was finished."""

    ours: bool
    exists: bool
    done: bool = True


def take_duty(duty: str, *, worker: str | None = None) -> Query[DutyTurn]:
    """Take a duty for the length of a transaction; a `worker` takes it only as long as its own lease holds."""
    return Query("duty_take", {"duty": duty, "worker": worker}, lambda row: DutyTurn(*row))


def take_turn(duty: str, *, every: timedelta) -> Query[DutyTurn]:
    """Take the turn of a duty that one worker of the fleet has every so often."""
    return Query("duty_turn", {"duty": duty, "every": interval(every)}, lambda row: DutyTurn(*row))


def finish_duty(duty: str) -> Query[str]:
    """Say that a duty whose turn we had is done."""
    return Query("duty_done", {"duty": duty}, first)
