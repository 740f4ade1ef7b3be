"""A worker in a process of its own, for tests that kill it: python -m tests.worker.process URL LEASE-SECONDS PARENT."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from rowlock import Retry, Rowlock, current_job
from rowlock.cli.supervisor import end_with

app = Rowlock(sys.argv[1] if __name__ == "__main__" else "postgresql://nobody@nowhere/none")


@app.task(name="hold")
async def hold() -> None:
    """Run for ever, unless it has been rescued."""
    if not current_job().crashes:
        await asyncio.Event().wait()


@app.task(name="hold in a thread")
def hold_in_a_thread() -> None:
    """Run for ever in a thread, unless it has been rescued."""
    if not current_job().crashes:
        threading.Event().wait()


@app.task(name="kill", retry=Retry(attempts=1))
async def kill() -> None:
    """Take the worker down."""
    os._exit(9)


@app.task(name="quick")
async def quick() -> None:
    """Be done at once."""


@app.task(name="write once")
async def write_once(number: int) -> None:
    """Write a row together with the end of the job."""
    async with current_job().transaction() as connection:
        await connection.execute("insert into effects values (%s)", [number])
        await connection.execute("select pg_sleep(0.05)")


@app.task(name="write once in a thread")
def write_once_in_a_thread(number: int) -> None:
    """Write a row together with the end of the job."""
    with current_job().transaction() as connection:
        connection.execute("insert into effects values (%s)", [number])
        connection.execute("select pg_sleep(0.05)")


@contextmanager
def worker_process(url: str, *, lease: float = 30.0) -> Iterator[subprocess.Popen[str]]:
    """A running worker process that has printed that it works; killed at the end if it still lives."""
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "tests.worker.process", url, str(lease), str(os.getpid())]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() in {"works\n", ""}  # one that a job kills may not come to say it
        yield process
    finally:
        process.kill()
        process.communicate()


async def main() -> None:
    """Work until killed."""
    async with app.worker(slots=10, lease=timedelta(seconds=float(sys.argv[2])), grace=timedelta(seconds=1)):
        print("works", flush=True)  # noqa: T201  the test reads it
        await asyncio.Event().wait()


if __name__ == "__main__":
    end_with(int(sys.argv[3]))  # a test that hangs is ended without a chance to clean up
    asyncio.run(main())
