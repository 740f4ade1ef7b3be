"""Incarnation: one id and lease of a worker, and the loops that live under it."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from uuid import uuid4

from rowlock.db.handler_connections import HandlerConnections
from rowlock.db.safe_logger import SafeLogger
from rowlock.db.session import Server
from rowlock.db.thread_connection import ReconnectingSyncConnection
from rowlock.db.threads import in_own_thread
from rowlock.db.worker_connection import ReconnectingConnection
from rowlock.model.failure import reason_of
from rowlock.model.row import ClaimedJob, Orphan
from rowlock.store import jobs, queues, workers
from rowlock.store import upkeep as upkeep_store
from rowlock.worker import upkeep
from rowlock.worker.call import Returned
from rowlock.worker.claim import Claimer
from rowlock.worker.counts import Counts
from rowlock.worker.lease import Chore, Lease, Renewer
from rowlock.worker.loop_watchdog import LoopWatchdog
from rowlock.worker.progress import StartMarker
from rowlock.worker.queues import warn_of_unserved_queues
from rowlock.worker.reconcile import Canceller, Reconciler
from rowlock.worker.registration import Faults, Registration, StatusWriter, WorkerConfig
from rowlock.worker.rescue import Rescuer
from rowlock.worker.run import Runner
from rowlock.worker.schedule import LOOK_EVERY, Firer
from rowlock.worker.settle import Breakers, Retention, Settler
from rowlock.worker.threads import HandlerThreads
from rowlock.worker.transaction import TransactionResources
from rowlock.worker.upkeep import Hastener
from rowlock.workflow.attempt import MOST_CRASHES

log = SafeLogger("rowlock.worker")

# What all of the end may take together once the grace period is over: longer means that the database is not there. With
# what the command line needs to end the process, it is under the five seconds that are promised.
_LEAVE_WITHIN = 4.0
# Of this, so many seconds are kept to leave in: what is not settled by then is handed back. What is settled apart,
# because PostgreSQL refuses it, or is locked by somebody, has so many. Better it runs again than counts as a crash.
_FOR_LEAVING, _APART_WITHIN = 1.0, 1.0
_AGAIN = 0.1
_MOST_NAMED = 5
# A claim or a settle may take longer than a renewal: a lease does not hang on them.
_LEAST_DEADLINE = 5.0
# So long a worker that was cut off leaves the others, who may have been cut off too, to come back for their jobs.
_PATIENCE = timedelta(seconds=5)
# What stopping the renewing thread may take when it has nothing under way, or what it has is given up.
_AT_ONCE = 0.5
# The fence is looked at so often: a machine that was asleep has slept through every timer.
_LOOK_AT_LEASE = 1.0


class Incarnation:
    """Three connections: one claims and listens, one settles, one renews."""

    def __init__(
        self,
        config: WorkerConfig,
        server: Server,
        *,
        threads: HandlerThreads[Returned],
        predecessors: Sequence[str] = (),
        faults: Faults = (0, None),
    ) -> None:
        """`threads` are those of all incarnations; `predecessors` and `faults` are as in Registration."""
        self.id = str(uuid4())
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.ended = asyncio.Event()
        self.exhausted = False  # too many of its attempts are stuck
        self.left_jobs = False  # it could not hand them back
        self.fault: str | None = None  # what one of its loops has failed of
        self._unsettled: list[ClaimedJob] = []  # were finished when the settling loop failed
        self._config = config
        self.has_let_go = self._is_leaving = self._is_stopping = False
        self._retention = Retention(config.handlers, config.keep)
        self._counts = Counts(self.id)
        self._lease = Lease(lasts=config.timing.lease, margin=config.timing.deadline)
        patient = self._deadline = max(_LEAST_DEADLINE, config.timing.deadline.total_seconds())
        self._steady = ReconnectingSyncConnection(server, config.schema, name="rowlock renew", deadline=patient)
        self._settle_link = ReconnectingConnection(server, config.schema, name="rowlock settle", deadline=patient)
        self._claim_link = ReconnectingConnection(server, config.schema, name="rowlock claim", deadline=patient)
        self._settler = self._make_settler(server)
        late = config.deadline.total_seconds()
        self._lent = HandlerConnections(server, config.schema, within=config.within, deadline=late)
        self._marker = StartMarker(due=self._settler.wake)
        self._runner = self._make_runner(threads)
        self._canceller = Canceller(worker=self.id, runner=self._runner, due=self._settler.wake)
        self._settler.side_tasks = [self._canceller, self._marker]
        self._reconciler = Reconciler(worker=self.id, runner=self._runner, link=self._settle_link)
        self._claimer = self._make_claimer()
        self._registration = Registration(
            config,
            self._steady,
            worker=self.id,
            name=self.name,
            lease=self._lease,
            retention=self._retention,
            counts=self._counts,
            predecessors=predecessors,
            faults=faults,
        )
        self._renewer = self._make_renewer()
        self._loops: list[asyncio.Task[None]] = []
        self._status = StatusWriter(self.id, faults)

    @property
    def unsettled(self) -> list[str]:
        """The ids of incarnations whose jobs the next one must hand back."""
        return [*self._registration.predecessors, *([self.id] if self.has_let_go else [])]

    def _make_settler(self, server: Server) -> Settler:
        return Settler(
            link=self._settle_link,
            keep=self._retention.after,
            keep_cancelled=self._config.keep.cancelled,
            settled=lambda rows: self._runner.settled(rows),  # noqa: PLW0108  it is made later
            breakers=Breakers(self._config.handlers),
            make_partitions=partial(
                self._retention.make_partitions, server, self._config.schema, deadline=self._deadline
            ),
            actor=self.name,
            is_ours=lambda: self._lease.left > 0,
        )

    def _make_runner(self, threads: HandlerThreads[Returned]) -> Runner:
        config = self._config
        return Runner(
            handlers=config.handlers,
            slots=config.slots,
            threads=threads,
            finished=self._settler.add,
            marker=self._marker,
            progress=self._settler.progress.update,
            resources=TransactionResources(
                transactions=self._lent,
                handlers=config.handlers,
                keep=self._retention.after,
                last_progress=self._settler.progress.take_last,
                open=self._settler.progress.held,
            ),
            memory=self._settler.recorder,
            counts=self._counts,
            database=config.database,
            on_exhausted=self._exhaust,
            arounds=config.arounds,
        )

    def _make_claimer(self) -> Claimer:
        return Claimer(
            link=self._claim_link,
            queues=self._config.queues,
            tasks=sorted(self._config.handlers),
            worker=self.id,
            runner=self._runner,
            reconciler=self._reconciler,
            counts=self._counts,
            unfit=lambda: self._renewer.unfit,
        )

    def _make_renewer(self) -> Renewer:
        loop = asyncio.get_running_loop()
        timing = self._config.timing
        rescuer = Rescuer(
            worker=self.id,
            actor=self.name,
            keep=self._config.keep,
            longest=self._retention.longest,
            patience=min(_PATIENCE, timing.renew) if self._registration.predecessors else timedelta(0),
            lease=self._lease,
        )
        firer = Firer(boot=self._config.boot, keep=self._config.keep.cancelled, longest=self._retention.longest)
        return Renewer(
            connection=self._steady,
            worker=self.id,
            timing=timing,
            lease=self._lease,
            lost=partial(loop.call_soon_threadsafe, self._let_go, "lost its lease"),
            watchdog=LoopWatchdog(loop, self._runner.job_of),
            chores=[
                Chore("telling how we are", timedelta(seconds=1), self._write_status, even_unfit=True),
                Chore("reconciling", timing.renew, self._reconciler.poll),
                Chore("firing schedules", LOOK_EVERY, firer.fire_due),
                *upkeep.chores(
                    timing=timing,
                    actor=self.name,
                    keep=self._config.keep,
                    longest=self._retention.longest,
                    rescuer=rescuer,
                    floors=self._claimer.floors,
                    settings=self._retention.learn,
                    counts=self._counts,
                ),
                Hastener(
                    self._lease,
                    self._config.queues,
                    set_back=partial(loop.call_soon_threadsafe, self._claimer.clock_was_set_back),
                ).chore(),
            ],
        )

    def _write_status(self, connection: ReconnectingSyncConnection) -> None:
        stuck, stopping, unfit = self._runner.stuck, self._is_stopping, self._renewer.unfit
        links = [self._settle_link.fault, self._settler.fault_apart, self._claim_link.fault]
        failing = [*links, self._renewer.fault]
        self._status.write(connection, stuck=stuck, stopping=stopping, unfit=unfit, failing=failing)

    async def start(self) -> None:
        """Enter the books and listen; only then claim."""
        await self._settle_link.open()  # which waits through an outage
        while not await in_own_thread(partial(self._registration.try_to, self._renewer.enter)):
            await self._settle_link.run(queues.settings())
        self._steady.deadline = self._config.timing.deadline.total_seconds()
        self._renewer.start()  # at once: over a slow line the rest of the start may take longer than the lease
        channels = await self._settle_link.run(queues.channels(self._config.queues.names))
        self._claim_link.listen([*channels, f"rowlock:{self.id}"], self._notified)
        await self._claim_link.open()
        self._watch_lease()
        self._loops = [asyncio.create_task(self._settler.run()), asyncio.create_task(self._claimer.run())]
        for loop in self._loops:
            loop.add_done_callback(self._loop_ended)
        self._canceller.start()
        facts = (self.name, self.id, self._config.queues, self._config.slots, self._config.place())
        log.info("worker %s (%s) works on %s with %d slots, in %s", *facts)
        await warn_of_unserved_queues(self._config.handlers, self._config.queues, self._settle_link, worker=self.id)

    async def stop(self, grace: timedelta, *, hurry: asyncio.Event) -> None:
        """Claim no more, give running attempts their time, hand back the rest, settle everything, leave.

        The grace period and a claim under way go on at once; whatever comes after the grace period shares one budget.
        An incarnation that has let go of its jobs only closes: none of them is its own any more.
        """
        self._is_stopping = True
        if self._loops:  # else it was stopped before it had started
            self._claimer.stop()
            self._runner.drain()
            self._loops[1].add_done_callback(lambda _: self._runner.drain())  # what it has brought goes back
            if not self.has_let_go:
                await self._runner.wait(grace, hurry=hurry)
        ends = time.monotonic() + _LEAVE_WITHIN
        if self._loops:
            await self._leave(ends)
        await self._close(ends)
        log.info("worker %s (%s) has stopped", self.name, self.id)

    async def _leave(self, ends: float) -> None:
        settling, claiming, *_ = self._loops
        await self._runner.cancel()
        left = False
        try:
            async with asyncio.timeout(max(0.0, ends - time.monotonic())):
                if not self.has_let_go:
                    await asyncio.wait([claiming])  # cancelled, it might be committed after we have left
                    await self._hand_back(settling, ends - _FOR_LEAVING)
                    left = True
        except TimeoutError:
            self.left_jobs = True
            log.error(  # noqa: TRY400
                "no reply from the database%s; others take our jobs when our lease has run out", self._why_none
            )
        for loop in self._loops:
            loop.cancel()
        await asyncio.wait(self._loops)
        if left:  # else the database is away
            await in_own_thread(partial(self._write_last_counts, ends))

    @property
    def _why_none(self) -> str:
        fault = self._settle_link.fault
        return "" if fault is None else f" ({fault[0]})"

    async def _hand_back(self, settling: asyncio.Task[None], until: float) -> None:
        left: list[ClaimedJob] = []
        if not settling.done():
            await self._settler.flush(patience=_APART_WITHIN, until=until)
            left = self._runner.unsettled()
        self._is_leaving = True
        await in_own_thread(partial(self._renewer.stop, _AT_ONCE))  # first, for it would find the lease gone
        doubtful = [Orphan(row.id, row.token) for row in self._unsettled]
        if left:
            settling.cancel()  # before they are handed back: it would go on with them
            await asyncio.wait([settling])
        await self._give_back([orphan.token for orphan in doubtful], left, until)
        await self._settle_link.run(workers.leave(worker=self.id))
        if doubtful:  # one of them may be what the loop fails of: that counts as a crash, or it would go on forever
            rescue = upkeep_store.rescue(doubtful, crashes=MOST_CRASHES, keep=self._config.keep, actor=self.name)
            await self._settle_link.run(rescue)

    async def _give_back(self, known: Sequence[str], left: Sequence[ClaimedJob], until: float) -> None:
        """Give back what we hold; again, while there is time, what was `left` and was locked by somebody just then."""
        await self._settle_link.run(self._reconciler.hand_back(known))
        if left:
            log.error("%s", _told_of(left))
        while left and time.monotonic() < until:
            held = await self._settle_link.run(jobs.held(left))
            if all(is_cancelling for _, is_cancelling in held):
                return
            await asyncio.sleep(_AGAIN)
            await self._settle_link.run(self._reconciler.hand_back(known))

    def _write_last_counts(self, ends: float) -> None:
        self._steady.until = ends
        self._counts.log_totals(last=True)
        try:
            self._counts.write(self._steady)
        except Exception:
            log.exception("the last counts could not be written; what stats say of this worker ends before its end")

    def _notified(self, payload: str) -> None:
        """Notifications are hints. Those of our own channel say what they are about, those of a queue need not."""
        if payload == "cancel":
            self._canceller.notified()
        else:
            self._claimer.notified(payload)

    def _exhaust(self) -> None:
        log.error("worker %s (%s) is worn out: %d of its attempts are stuck", self.name, self.id, self._runner.stuck)
        self.exhausted = True
        self.ended.set()

    async def _close(self, ends: float) -> None:
        self._canceller.stop()
        self._runner.close()
        self._is_leaving = True
        self._reconciler.stop()
        if not self._loops:  # a registration may be under way
            self._steady.until = 0.0
            self._steady.abort()
        await in_own_thread(partial(self._renewer.stop, max(_AT_ONCE, ends - time.monotonic())))
        self._renewer.close()
        self._steady.close()
        await self._settle_link.close()
        await self._claim_link.close()
        await self._lent.close()

    def _watch_lease(self) -> None:
        """Let go before the lease can have run out. On the loop: the renewing thread may hang, in a resolver say."""
        if self.has_let_go or self._is_leaving:
            return
        left = self._lease.left
        if left <= 0:
            self._let_go("could not renew its lease in time")
        else:
            asyncio.get_running_loop().call_later(min(left, _LOOK_AT_LEASE), self._watch_lease)

    def _let_go(self, why: str) -> None:
        """Others may run our jobs now, or soon: every attempt is told and cancelled, and nothing of it is settled."""
        if self.has_let_go or self._is_leaving:
            return
        log.error("worker %s (%s) %s; it lets go of its jobs and restarts", self.name, self.id, why)
        self.has_let_go = True
        self._runner.lose_all()
        self.ended.set()

    def _loop_ended(self, loop: asyncio.Task[None]) -> None:
        """A loop ends only when it is cancelled; else it is a fault of ours, and a new incarnation is the cure."""
        if not loop.cancelled() and loop.exception() is not None:
            log.critical("a loop of worker %s failed; restarting", self.name, exc_info=loop.exception())
            self.fault = reason_of(loop.exception())
            self._unsettled = self._runner.unsettled() if loop is self._loops[0] else []
            self.ended.set()


def _told_of(left: Sequence[ClaimedJob]) -> str:
    named = ", ".join(f"{row.task} {row.id}" for row in left[:_MOST_NAMED])
    more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
    return f"not settled before this worker leaves, and handed back to run again: {named}{more}"
