"""Workflows at play: run here and now, attempt by attempt."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeVar

from rowlock import Job, Retry, Rowlock
from rowlock.testing import Drained, drain
from tests.rows import Db

T = TypeVar("T")

# A sleep that is over as soon as it has begun: what follows it runs in another attempt.
MOMENT = timedelta(microseconds=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
# Nobody waits for a job that does not end.
AT_MOST = timedelta(seconds=10)
# Three tries, of which each is due at once: in another attempt.
AT_ONCE = Retry(attempts=3, base=timedelta(0), cap=timedelta(0))
ONCE = Retry.none()


def play(app: Rowlock, job: Job[T]) -> T:
    """Run what is due, and answer what has become of a job."""
    drain(app)
    return job.result(AT_MOST)


def blocked(job: Job[Any]) -> str:
    """The fault that blocks a workflow."""
    record = job.record()
    assert (record.state, record.waits_for) == ("waiting", "code"), record
    return record.reason or ""


def ended(drained: Drained) -> list[str]:
    """How the attempts of a drain ended, in their order."""
    return [attempt.ended for attempt in drained]


def steps(app: Rowlock, job: Job[Any]) -> list[tuple[str, str]]:
    """What a workflow remembers, live or ended: keys and states, in the order in which they were begun."""
    return [(step.key, step.state) for step in app.workflows.show(job.id)]


def kept(app: Rowlock, job: Job[Any], key: str) -> Any:  # noqa: ANN401  a JSON value
    """What a step has come to, as it is remembered."""
    [step] = [step for step in app.workflows.show(job.id) if step.key == key]
    return step.result


def everything(db: Db) -> list[tuple[Any, ...]]:
    """All that is remembered of live workflows, their rows included, but for who claimed them and when."""
    return [
        *db.execute("select step::text from rowlock.steps as step order by job, key").fetchall(),
        *db.execute("select signal::text from rowlock.signals as signal order by job, number").fetchall(),
        *db.execute("select id, args::text, workflow_state::text, version from rowlock.jobs order by id").fetchall(),
    ]
