"""An app with schedules for the crews of the fault suite: each job tells the oracle for which slot it was made."""

from __future__ import annotations

from datetime import timedelta

from rowlock import current_job
from rowlock.worker import incarnation
from tests.faults.tasks import app, oracle

__all__ = ["app"]

SECOND = timedelta(seconds=1)

# As in stations.py: most answers that are waited for here never come.
incarnation._LEAST_DEADLINE = 1.0


@app.task(name="tell its slot")
async def tell() -> None:
    """Be done at once."""
    job = current_job()
    assert job.slot is not None
    oracle().write("slot", schedule=job.schedule, slot=job.slot.isoformat(), job=str(job.id))


tell.every(SECOND, name="all", overlap="allow", catch_up=1000)
tell.every(SECOND, name="last", overlap="allow")
tell.every(SECOND, name="none", overlap="allow", catch_up="none")
tell.every(SECOND, name="skip")
tell.every("* * * * * *", name="queue", tz="Australia/Lord_Howe", overlap="queue")

NAMES = {"all", "last", "none", "skip", "queue"}
