"""Queues: settings, channels, and when their next job is due."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from rowlock.model.outcome import Cancelled, Ended, Failed, Succeeded
from rowlock.store.claim import Lane
from rowlock.store.query import Query, Row, array, first, interval, plain_array


class QueueSettings(NamedTuple):
    """What an operator has set for a queue; None is not set."""

    name: str
    keep_succeeded: timedelta | None
    keep_failed: timedelta | None
    keep_cancelled: timedelta | None

    def keep_after(self, outcome: Ended) -> timedelta | None:
        """How long to keep a job that ended so, if the operator has said."""
        match outcome:
            case Succeeded():
                return self.keep_succeeded
            case Failed():
                return self.keep_failed
            case Cancelled():
                return self.keep_cancelled


def settings() -> Query[QueueSettings]:
    """Every queue that has settings."""
    return Query("queue_settings", {}, _settings)


def channels(queues: Iterable[str]) -> Query[str]:
    """The notification channels of these queues."""
    return Query("queue_channels", {"queues": array(queues)}, first)


def blocked(tasks: Iterable[str]) -> Query[str]:
    """The queues with jobs that wait for the code of these tasks."""
    return Query("queue_blocked", {"tasks": array(tasks)}, first)


def _settings(row: Row) -> QueueSettings:
    name, *keeps = row
    return QueueSettings(name, *(None if keep is None else timedelta(seconds=keep) for keep in keeps))


def used(known: Iterable[str] = ()) -> Query[str]:
    """The queues that have ready jobs, due or not, but for those that are known."""
    return Query("queue_used", {"known": array(known)}, first)


def tell() -> Query[int]:
    """Tell workers where jobs wait that they may not see; returns how many lanes have one."""
    return Query("lane_tell", {}, first)


class Outlook(NamedTuple):
    """How soon a job is due, if one is soon, and the number of the latest parking."""

    due_in: float | None
    parking: int
    settled: str  # where nothing is due, there is nothing before this time


def due_in(lanes: Sequence[Lane], *, within: timedelta) -> Query[Outlook]:
    """The seconds until the first job of these lanes is due, if that is within some time."""
    names, priorities, run_ats, ids = zip(*lanes, strict=True)
    return Query(
        "lane_due",
        {
            "queues": array(names),
            "priorities": plain_array(map(str, priorities)),
            "floor_run_ats": array(run_ats),
            "floor_ids": plain_array(ids),
            "within": interval(within),
        },
        lambda row: Outlook(*row),
    )
