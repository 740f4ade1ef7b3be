"""More tasks for the crews of the fault suite: a job that meets every statement of a worker's work."""

from __future__ import annotations

from datetime import timedelta

from rowlock import Breaker, Retry, current_job
from rowlock.worker import incarnation
from tests.faults.tasks import app, attempt

__all__ = ["app"]

# A worker waits for five seconds, at least, for answers that its lease does not hang on. Here most of these never come.
incarnation._LEAST_DEADLINE = 1.0


@app.task(name="take the long way", retry=Retry(attempts=2, base=timedelta(0)), breaker=Breaker(failures=1_000))
async def take_the_long_way(n: int) -> str:
    """Say how far it is; fail at first, then be done."""
    with attempt(n=n) as token:
        current_job().progress(0.5)
        if current_job().attempt == 1:
            raise RuntimeError("not yet")
        return token
