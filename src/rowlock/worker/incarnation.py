"""One incarnation of a worker: an id, a lease, and the loops that live under it."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from importlib.metadata import version
from uuid import uuid4

from rowlock.db.link import Link
from rowlock.db.partitions import make_partitions
from rowlock.db.session import Steady, Unreachable
from rowlock.model.handler import Handler
from rowlock.model.row import Claimed
from rowlock.model.spec import Keep
from rowlock.store import jobs, queues, workers
from rowlock.worker import upkeep
from rowlock.worker.around import Around
from rowlock.worker.claim import Claimer
from rowlock.worker.count import Counts
from rowlock.worker.lanes import Queues
from rowlock.worker.renew import Renewer
from rowlock.worker.retention import Retention
from rowlock.worker.run import Runner
from rowlock.worker.settle import Settler

log = logging.getLogger("rowlock.worker")

# What settling, handing back and leaving may take at the end; longer means that the database is not there.
_LEAVE_WITHIN = 5.0


@dataclass(frozen=True, slots=True)
class Setup:
    """What every incarnation of a worker has in common."""

    handlers: Mapping[str, Handler]
    schema: str
    keep: Keep
    queues: Queues
    slots: int
    threads: int
    lease: timedelta
    arounds: Sequence[Around] = ()


class Incarnation:
    """Three connections: one claims and listens, one settles, one renews."""

    def __init__(self, setup: Setup, conninfo: str) -> None:
        self.id = str(uuid4())
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.ended = asyncio.Event()
        self._setup = setup
        self._retention = Retention(setup.handlers, setup.keep)
        self._counts = Counts(self.id)
        self._steady = Steady(conninfo, setup.schema, name="rowlock renew")
        self._settle_link = Link(conninfo, setup.schema, name="rowlock settle")
        self._claim_link = Link(conninfo, setup.schema, name="rowlock claim")
        self._settler = Settler(
            link=self._settle_link,
            keep=self._retention.after,
            settled=self._settled,
            make_partitions=partial(self._make_partitions, conninfo),
        )
        self._runner = Runner(
            handlers=setup.handlers,
            slots=setup.slots,
            threads=setup.threads,
            finished=self._settler.add,
            progress=self._settler.progress.say,
            counts=self._counts,
            arounds=setup.arounds,
        )
        self._claimer = Claimer(
            link=self._claim_link,
            queues=setup.queues,
            tasks=sorted(setup.handlers),
            worker=self.id,
            runner=self._runner,
            counts=self._counts,
        )
        self._renewer = self._make_renewer()
        self._loops: list[asyncio.Task[None]] = []

    def _settled(self, rows: Sequence[Claimed]) -> None:
        self._runner.settled(rows)

    def _make_renewer(self) -> Renewer:
        loop = asyncio.get_running_loop()
        return Renewer(
            connection=self._steady,
            worker=self.id,
            lease=self._setup.lease,
            lost=partial(loop.call_soon_threadsafe, self._lease_lost),
            chores=upkeep.chores(
                lease=self._setup.lease,
                actor=self.name,
                keep=self._setup.keep,
                longest=self._retention.longest,
                settings=self._retention.learn,
                counts=self._counts,
            ),
        )

    async def start(self) -> None:
        """Enter the books and listen; only then claim."""
        await self._settle_link.open()  # which waits through an outage
        while not await asyncio.to_thread(self._enter):
            await self._settle_link.run(queues.settings())
        channels = await self._settle_link.run(queues.channels(self._setup.queues.names))
        self._claim_link.listen(channels, self._claimer.notified)
        await self._claim_link.open()
        self._renewer.start()
        self._loops = [asyncio.create_task(self._settler.run()), asyncio.create_task(self._claimer.run())]
        for loop in self._loops:
            loop.add_done_callback(self._loop_ended)
        names = ", ".join(self._setup.queues.names)
        log.info("worker %s (%s) works on %s with %d slots", self.name, self.id, names, self._setup.slots)

    async def stop(self, grace: timedelta, *, hurry: asyncio.Event) -> None:
        """Claim no more, give running attempts their time, hand back the rest, settle everything, leave."""
        if not self._loops:  # it was stopped before it had started
            await self._close()
            return
        settling, claiming = self._loops
        self._claimer.stop()
        await asyncio.wait([claiming], timeout=_LEAVE_WITHIN)
        claiming.cancel()
        self._runner.drain()
        await self._runner.wait(grace, hurry=hurry)
        await self._runner.cancel()
        left = False
        try:
            async with asyncio.timeout(_LEAVE_WITHIN):
                if not settling.done():
                    await self._settler.flush()
                await self._settle_link.run(jobs.hand_back(worker=self.id))
                await self._settle_link.run(workers.leave(worker=self.id))
                left = True
        except TimeoutError:
            log.error("no answer from the database; others take our jobs when our lease has run out")  # noqa: TRY400
        settling.cancel()
        await asyncio.wait([settling])
        await asyncio.to_thread(self._renewer.stop)
        if left:  # else nobody answers
            await asyncio.to_thread(self._write_last_counts)
        await self._close()
        log.info("worker %s (%s) has stopped", self.name, self.id)

    def _write_last_counts(self) -> None:
        try:
            self._counts.write(self._steady)
        except Exception:
            log.exception("the last counts could not be written; what stats say of this worker ends before its end")

    def _enter(self) -> bool:
        try:
            self._register()
        except Unreachable as outage:
            log.warning("the database does not answer (%s); trying again", outage)
            return False
        return True

    def _register(self) -> None:
        setup = self._setup
        make_partitions(self._steady.open(), setup.schema, longest=self._retention.longest)
        self._retention.learn(self._steady.run(queues.settings()))
        [now] = self._steady.run(
            workers.register(
                worker=self.id,
                host=socket.gethostname(),
                pid=os.getpid(),
                queues=setup.queues.names,
                slots=setup.slots,
                tasks=sorted(setup.handlers),
                version=version("rowlock"),
                lease=setup.lease,
            )
        )
        self._counts.begin(now)

    async def _close(self) -> None:
        self._runner.close()
        self._steady.close()
        await self._settle_link.close()
        await self._claim_link.close()

    async def _make_partitions(self, conninfo: str) -> None:
        """A settle found no partition for the day: upkeep has not run for long, or an operator raised a retention.

        On a connection of its own, for the renewing one must not wait. Trouble passes: the settle will ask again.
        """
        steady = Steady(conninfo, self._setup.schema, name="rowlock partitions")
        try:
            await asyncio.to_thread(
                lambda: make_partitions(steady.open(), self._setup.schema, longest=self._retention.longest)
            )
        except Exception:
            log.exception("partitions of history could not be made; trying again")
            await asyncio.sleep(1)
        finally:
            steady.close()

    def _lease_lost(self) -> None:
        log.error("worker %s (%s) lost its lease; handing back and starting anew", self.name, self.id)
        self.ended.set()

    def _loop_ended(self, loop: asyncio.Task[None]) -> None:
        """A loop ends only when it is cancelled; else it is a fault of ours, and a new incarnation is the cure."""
        if not loop.cancelled() and loop.exception() is not None:
            log.critical("a loop of worker %s failed; starting anew", self.name, exc_info=loop.exception())
            self.ended.set()
