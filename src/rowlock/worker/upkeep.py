"""Upkeep: chores that any worker does for the whole fleet, without a leader."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from rowlock.db import partitions
from rowlock.db.safe_logger import SafeLogger
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.model.spec import Keep
from rowlock.store import clock, enqueue, jobs, pauses, queues, schema, upkeep
from rowlock.store.doctor import queries
from rowlock.store.queues import QueueSettings
from rowlock.store.schedules import fire
from rowlock.store.stats import minutes
from rowlock.worker.counts import Counts
from rowlock.worker.halve import LeftOut, in_chunks
from rowlock.worker.lease import UNFINISHED, Chore, Lease, Unfinished
from rowlock.worker.queues import Floors, Queues
from rowlock.worker.rescue import Rescuer
from rowlock.worker.settings import Timing

log = SafeLogger("rowlock.upkeep")

# Listeners take back their own rows; those of a process that was killed stay so long.
_WAITERS_STAY = timedelta(hours=1)
# Chunks of jobs that one sweep releases: it shares its thread with the lease.
_RELEASES = 10
# Chunks of jobs that one sweep ends as expired.
_EXPIRIES = 20
# A task that has not failed for so long has no failures to count from.
_FAILURES_STAY = timedelta(days=1)
# Keys whose periods are over, in one statement, and how many such a sweep sends.
_KEYS_BATCH = 1_000
_KEYS_BATCHES = 20
# Minutes of so long ago are merged: whoever could not write for as long has lost its lease, and its counts with it.
_MERGE_AFTER = timedelta(minutes=5)
# One takes 20 ms for 600 rows.
_MERGED_AT_ONCE = 5
# Chores come round a little sooner than they say, at random: this share of their pause counts as recent.
_RECENT_SHARE = 0.8
# Rows of one statement, and statements of one sweep: it shares its thread with the lease.
_BATCH = 5_000
_BATCHES = 20
# Clocks are set by less than that all the time.
_LEAST = timedelta(seconds=1)


def chores(
    *,
    timing: Timing,
    actor: str,
    keep: Keep,
    longest: timedelta,
    rescuer: Rescuer,
    floors: Floors,
    settings: Callable[[Sequence[QueueSettings]], None],
    counts: Counts,
) -> list[Chore]:
    """The upkeep of a fleet."""
    sweep = min(timedelta(seconds=5), timing.lease / 3)
    return [
        Chore("rescue", rescuer.search_every, rescuer.run),
        Chore("looking from the bottom", _BELOW_EVERY, lambda connection: look_below(connection, floors=floors)),
        *(_in_turn(chore, duty) for duty, chore in _of_the_fleet(sweep, actor, keep, longest, rescuer).items()),
        Chore(
            "reading queue settings",
            timedelta(seconds=10),
            lambda connection: settings(connection.run(queues.settings())),
        ),
        Chore("writing counts", minutes.WRITE_EVERY, counts.write),
        Chore("looking at the notification queue", timedelta(minutes=1), watch_notifications),
    ]


def _of_the_fleet(sweep: timedelta, actor: str, keep: Keep, longest: timedelta, rescuer: Rescuer) -> dict[str, Chore]:
    """What one worker does for all, by the name of its duty: done by each, it would cost the square of the fleet."""
    unending, unfree, kept = LeftOut("expired job", "ended"), LeftOut("paused job", "released"), LeftOut("key", "freed")
    blocked = LeftOut("blocked workflow", "released")
    return {
        "lost": Chore("rescue of the lost", sweep * 12, lambda connection: rescuer.sweep(connection, lost=True)),
        "waiters": Chore("clearing away waiters", timedelta(minutes=10), clear_waiters),
        "pauses": Chore("resuming", sweep * 2, lambda connection: resume(connection, actor=actor, left_out=unfree)),
        "expired": Chore(
            "ending expired jobs",
            sweep * 2,
            lambda connection: expire(connection, keep=keep, longest=longest, left_out=unending),
        ),
        "blocked": Chore(
            "trying blocked workflows again", sweep, lambda connection: unblock(connection, left_out=blocked)
        ),
        "failures": Chore("forgetting failures", timedelta(hours=1), forget_failures),
        "keys": Chore("freeing keys", timedelta(minutes=1), lambda connection: free_keys(connection, left_out=kept)),
        "retention": Chore("retention", timedelta(hours=1), lambda connection: retain(connection, longest=longest)),
        "merging": Chore("merging counts", timedelta(minutes=1), merge_minutes),
        "minutes": Chore("removing old counts", timedelta(minutes=5), remove_minutes),
        "firings": Chore("forgetting old slots", timedelta(minutes=5), remove_firings),
    }


# One worker looks from the bottom for all; this many times what a look took lie between two, five minutes at most.
_BELOW = "below"
_BELOW_EVERY = timedelta(seconds=1.5)
_BELOW_FACTOR = 1_000
_BELOW_AT_LEAST_EVERY = timedelta(minutes=5)


def look_below(connection: ReconnectingSyncConnection, *, floors: Floors) -> timedelta:
    """Look from the bottom for the whole fleet, while that is too dear for each; returns how soon to look again."""
    if not floors.are_dear:
        return _BELOW_EVERY
    pause = min(max(_BELOW_EVERY, timedelta(seconds=_BELOW_FACTOR * floors.took)), _BELOW_AT_LEAST_EVERY)
    if connection.turn(_BELOW, every=pause * _RECENT_SHARE).ours:
        started = time.monotonic()
        connection.run(queues.tell())
        floors.looked_for_all(time.monotonic() - started)
        connection.finish(_BELOW)
    return pause


def _in_turn(chore: Chore, duty: str) -> Chore:
    """The same chore, unless another worker has done it recently."""

    def do(connection: ReconnectingSyncConnection) -> timedelta | Unfinished | None:
        turn = connection.turn(duty, every=chore.every * _RECENT_SHARE)
        if not turn.ours:
            return None if turn.done else UNFINISHED
        wish = chore.do(connection)
        connection.finish(duty)
        return wish

    return Chore(chore.name, chore.every, do)


def clear_waiters(connection: ReconnectingSyncConnection) -> None:
    """Remove what processes that were killed while they waited for results have left."""
    connection.run(jobs.clear_waiters(age=_WAITERS_STAY))


def resume(connection: ReconnectingSyncConnection, *, actor: str, left_out: LeftOut | None = None) -> None:
    """End the pauses whose time is over, and release jobs that wait for a pause that is no more."""
    left, left_out = _RELEASES, left_out or LeftOut("paused job", "released")
    for task in filter(None, connection.run(pauses.expire(actor=actor))):
        released = _release(connection, task, most=left, left_out=left_out)
        left -= released // pauses.CHUNK
        if released:
            log.info("released %d jobs of %s: it is not paused any more", released, task)


def _release(connection: ReconnectingSyncConnection, task: str, *, most: int, left_out: LeftOut) -> int:
    return in_chunks(
        connection,
        do=lambda limit, without: pauses.release(task, limit=limit, without=without),
        peek=lambda without: pauses.peek(task, without=without),
        size=pauses.CHUNK,
        most=most,
        left_out=left_out,
    )


def expire(
    connection: ReconnectingSyncConnection, *, keep: Keep, longest: timedelta, left_out: LeftOut | None = None
) -> None:
    """End the jobs that are not worth starting any more and that nobody claims, but for those that cannot be ended."""
    ended = in_chunks(
        connection,
        do=lambda limit, without: upkeep.expire(keep=keep.cancelled, limit=limit, without=without),
        peek=lambda without: upkeep.peek_expired(without=without),
        size=upkeep.EXPIRED_AT_ONCE,
        most=_EXPIRIES,
        left_out=left_out or LeftOut("expired job", "ended"),
        longest=longest,
    )
    if ended:
        log.info("cancelled %d jobs that had expired before anybody started them", ended)


def unblock(connection: ReconnectingSyncConnection, *, left_out: LeftOut | None = None) -> None:
    """Release workflows that met a fault of their code or their surroundings, when they are due to be tried again."""
    in_chunks(
        connection,
        do=lambda limit, without: upkeep.unblock(limit=limit, without=without),
        peek=lambda without: upkeep.peek_blocked(without=without),
        size=upkeep.UNBLOCKED_AT_ONCE,
        most=_RELEASES,
        left_out=left_out or LeftOut("blocked workflow", "released"),
    )


def forget_failures(connection: ReconnectingSyncConnection) -> None:
    """Remove what breakers have counted of tasks that have not failed for long."""
    connection.run(pauses.forget_failures(age=_FAILURES_STAY))


def free_keys(connection: ReconnectingSyncConnection, *, left_out: LeftOut | None = None) -> None:
    """Free the keys of ended jobs whose periods are over; whoever asks for one sooner frees it by that."""
    in_chunks(
        connection,
        do=lambda limit, without: enqueue.sweep_keys(limit, without=without),
        peek=lambda without: enqueue.peek_key(without=without),
        size=_KEYS_BATCH,
        most=_KEYS_BATCHES,
        left_out=left_out or LeftOut("key", "freed"),
    )


def retain(connection: ReconnectingSyncConnection, *, longest: timedelta) -> None:
    """Make partitions ahead of need, drop expired ones, and clear the spare part of events."""
    partitions.make_partitions(connection.open(), connection.schema, longest=longest)
    for name in partitions.drop_partitions(connection.open(), connection.schema):
        log.info("dropped %s: everything in it has expired", name)
    if cleared := connection.run(schema.clear_spare())[0]:
        log.info("removed %d expired events that had been written while their part was missing", cleared)


def watch_notifications(connection: ReconnectingSyncConnection) -> None:
    """Say so while nobody is notified any more: some session listens and takes no notifications."""
    [share] = connection.run(queries.notifications())
    if share >= queries.NOTIFIES_UNTIL:
        log.warning(
            "the server's queue of notifications is %.0f %% full, so nobody is notified: jobs and results are found by "
            "looking, about a second later; rowlock doctor names the session that has to end",
            share * 100,
        )


def merge_minutes(connection: ReconnectingSyncConnection) -> None:
    """Put together what several workers have counted of a minute that is over."""
    connection.run(minutes.merge(age=_MERGE_AFTER, limit=_MERGED_AT_ONCE))


def remove_minutes(connection: ReconnectingSyncConnection) -> None:
    """Remove counts that are over a day old, and no more at once than lets the lease be renewed in time."""
    for _ in range(_BATCHES):
        if connection.run(minutes.remove(_BATCH))[0] < _BATCH:
            return


def remove_firings(connection: ReconnectingSyncConnection) -> None:
    """Remove what is written down of slots that came over a week ago, and no more at once than with counts."""
    for _ in range(_BATCHES):
        if connection.run(fire.remove(_BATCH))[0] < _BATCH:
            return


class Hastener:
    """What a worker does for its own queues: at its start, and whenever a renewal shows that the clock was set back."""

    def __init__(self, lease: Lease, ours: Queues, *, set_back: Callable[[], object]) -> None:
        """`set_back` is called when the clock was, and jobs that are late for it have been brought forward."""
        self._lease = lease
        self._ours = ours
        self._tell_set_back = set_back
        self._has_compared = False

    def chore(self) -> Chore:
        """What to do every so often."""
        return Chore("bringing jobs forward", timedelta(seconds=1), self.run)

    def run(self, connection: ReconnectingSyncConnection) -> None:
        """Bring forward what is late."""
        if not self._has_compared:
            self._compare(connection)
        if by := self._lease.set_back:
            self._hasten(connection, by)
            self._tell_set_back()

    def _compare(self, connection: ReconnectingSyncConnection) -> None:
        """The clock may have been set back while no worker was there to see it: then the jobs know."""
        [seconds] = connection.run(clock.compare_with_jobs(queues=self._ours.names))
        self._has_compared = True
        if seconds is not None and (ahead := timedelta(seconds=seconds)) >= _LEAST:
            log.warning("the database's clock was set back by %s or more before this worker started", ahead)
            self._lease.set_back = max(self._lease.set_back, ahead)

    def _hasten(self, connection: ReconnectingSyncConnection, by: timedelta) -> None:
        late = 0
        for _ in range(_BATCHES):
            chunk = len(connection.run(clock.hasten(by=by, queues=self._ours.names)))
            late += chunk
            if chunk < clock.HASTENED_AT_ONCE:
                self._lease.set_back -= by
                break
        if late:
            log.warning("brought %d jobs forward by %s, for the database's clock was set back by that", late, by)
