"""`rowlock worker`: run the app's jobs until told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import NoReturn

import click

from rowlock.app.app import Rowlock
from rowlock.cli.shared.import_app import importing
from rowlock.cli.shared.log_setup import log_setup
from rowlock.cli.shared.options import AppChoice, app_options, debug_option
from rowlock.cli.shared.worker_options import worker_options
from rowlock.cli.supervisor import STOP_SIGNALS, Supervisor, child_command, end_with
from rowlock.db.embedded.server import embedded
from rowlock.db.errors import readable_errors, wait_until_reachable
from rowlock.db.migrate import wait_for_schema
from rowlock.worker.threads import HandlerThread
from rowlock.worker.worker import Worker

log = logging.getLogger("rowlock.worker")

# What may follow the grace period; the worker itself takes less, unless a lifespan is in no hurry to end.
_HAND_BACK_SECONDS = 5.0
_THREADS_SECONDS = 0.5


@click.command(
    epilog="Exit codes: 0 stopped when asked, 1 could not start, or had to leave without handing back "
    "(others take its jobs when its lease has run out), 2 wrong usage."
)
@app_options(required=True)
@worker_options
@click.option("--parent", type=int, hidden=True, help="The process that this one must not outlive.")
@debug_option
@click.pass_context
def worker(
    ctx: click.Context,
    choice: AppChoice,
    /,
    *,
    queues: list[str] | dict[str, float],
    slots: int,
    processes: int,
    threads: int | None,
    lease: timedelta,
    renew: timedelta | None,
    worker_deadline: timedelta | None,
    grace: timedelta,
    parent: int | None,
    **logs: str | None,
) -> None:
    """Claim and run the app's jobs until told to stop.

    SIGTERM or Ctrl-C: no new jobs, the running ones get the grace period, the rest is handed back and costs no attempt.
    A second signal hands back at once; a third leaves at once.
    """
    if parent is not None:
        end_with(parent)
    output = log_setup(ctx, logs, with_pid=parent is not None)
    output.begin()
    app = choice.open()
    with importing(str(choice.app)):  # Rowlock(imports=…)
        one = app.worker(
            queues=queues,
            slots=slots,
            threads=threads,
            lease=lease,
            renew=renew,
            deadline=worker_deadline,
            grace=grace,
        )
    output.settle()
    # Before any child is started, and while a signal still ends the process at once: there is nothing to hand back yet.
    server = wait_until_reachable(app.database)
    with readable_errors(app.database):
        asyncio.run(wait_for_schema(server, app.database.schema, deadline=app.database.deadline.value))
    if processes == 1:
        _work(app, one, grace=grace, parent=parent)
    elif not asyncio.run(Supervisor(child_command(ctx.obj), count=processes).run()):
        ctx.exit(1)


def _work(app: Rowlock, one: Worker, *, grace: timedelta, parent: int | None) -> None:
    with readable_errors(app.database):
        one.ends_worn_out = True
        stop = _Stop(one, grace=grace, parent=parent)
        asyncio.run(_run_until_stopped(one, stop, start_anew=partial(_restart_process, app, parent=parent)))
    if one.left_jobs:
        sys.exit(1)


async def _run_until_stopped(one: Worker, stop: _Stop, *, start_anew: Callable[[], NoReturn]) -> None:
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop.on_signal)
    threads = ThreadPoolExecutor()
    loop.set_default_executor(threads)
    await one.run()
    if one.worn_out:
        start_anew()
    # asyncio.run would wait for these without limit, and a handler may be stuck in asyncio.to_thread.
    threads.shutdown(wait=False, cancel_futures=True)
    code = 1 if one.left_jobs else 0
    await _leave_stuck_tasks(code)
    _leave_stuck_threads(code)


class _Stop:
    """Handles the first, second and third signal, and the end of the parent."""

    def __init__(self, one: Worker, *, grace: timedelta, parent: int | None) -> None:
        self._worker = one
        self._grace = grace
        self._parent = parent
        self._times = 0
        self._is_orphan = False

    def on_signal(self) -> None:
        if self._parent is not None and os.getppid() != self._parent:
            self._orphaned()
            return
        self._times += 1
        match self._times:
            case 1:
                seconds = self._grace.total_seconds()
                log.info("stopping: running jobs get %g s; a second signal hands them back at once", seconds)
                self._worker.stop()
                self._leave_after(seconds + _HAND_BACK_SECONDS)
            case 2:
                log.info("stopping at once: handing back what still runs")
                self._hurry()
            case _:
                self._leave()

    def _orphaned(self) -> None:
        """The parent is gone. The kernel says so once for each of its threads: more than one signal means no more."""
        if not self._is_orphan:
            self._is_orphan = True
            log.warning("process %s, which started this one, is gone: stopping at once", self._parent)
            self._worker.stop()
            self._hurry()

    def _hurry(self) -> None:
        self._worker.stop()
        self._leave_after(_HAND_BACK_SECONDS)

    def _leave_after(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._leave)

    def _leave(self) -> NoReturn:
        log.error("left without handing back; other workers take its jobs when its lease has run out")
        _exit(1)


async def _leave_stuck_tasks(code: int) -> None:
    """A coroutine that swallows every cancellation must not keep the process either: asyncio.run would wait for it."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks and (await asyncio.wait(tasks, timeout=_THREADS_SECONDS))[1]:
        log.warning("left while a coroutine was still running; a job in it was handed back, or has timed out")
        _exit(code)


def _leave_stuck_threads(code: int) -> None:
    """A handler that is stuck in a thread must not keep the process: its job has been handed back."""
    _let_pools_go()
    deadline = time.monotonic() + _THREADS_SECONDS
    for thread in threading.enumerate():
        if thread is threading.main_thread() or (thread.daemon and not isinstance(thread, HandlerThread)):
            continue
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            log.warning("left while thread %s was still running; if it ran a job, that was handed back", thread.name)
            _exit(code)


def _let_pools_go() -> None:
    """End the idle threads of all pools: Python does so when it exits, but only after we have looked.

    Told by its own method not to wait, a pool still runs what it was given. Nobody keeps a list of pools in public.
    """
    for pool in gc.get_objects():
        if issubclass(type(pool), ThreadPoolExecutor):  # isinstance would wake what only looks like something
            ThreadPoolExecutor.shutdown(pool, wait=False)  # a subclass may wait all the same


def _restart_process(app: Rowlock, *, parent: int | None) -> NoReturn:
    """Replace this process, and with it the threads that are stuck in it; under a supervisor, which does so, end it."""
    log.warning("restarting the process")
    if parent is not None:
        _exit(0)
    if app.database.address.folder is not None:
        embedded(app.database.address.folder).stop()
    logging.shutdown()
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606  the command that started us


def _exit(code: int) -> NoReturn:
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)
